/** How an API server shows who it is: with a client certificate, with a bearer token, or with both. */
export type CallerCredential = 'certificate' | 'bearer'

/** What an API server is started with. */
export interface ServerOptions {
  /** The endpoint of the functions. */
  endpoint: string
  /** Absolute folder on the machine of the API server where its files are. */
  folder: string
  credentials: readonly CallerCredential[]
  /** Folders of manifest-based admission below it, by plugin; none for configurations that are objects. */
  manifests?: { mutating: string; validating: string; policies?: string }
}

/**
 * The kubeconfig of an API server for its webhooks; undefined without credentials. It names files on that machine and holds no secret.
 * Users are found by the host of the webhook, with its port unless that is 443 (specs/serverless.md 1).
 */
export function serverKubeconfig({
  endpoint,
  folder,
  credentials,
}: ServerOptions): object | undefined {
  if (credentials.length === 0) return undefined
  const user = {
    ...(credentials.includes('certificate') && {
      'client-certificate': `${folder}/client.crt`,
      'client-key': `${folder}/client.key`,
    }),
    ...(credentials.includes('bearer') && { tokenFile: `${folder}/bearer-token` }),
  }
  return { apiVersion: 'v1', kind: 'Config', users: [{ name: new URL(endpoint).host, user }] }
}

/** The AdmissionConfiguration that leads to the kubeconfig and to manifests; undefined when an API server needs neither. */
export function admissionConfiguration(options: ServerOptions): object | undefined {
  const { folder, credentials, manifests } = options
  if (credentials.length === 0 && manifests === undefined) return undefined
  const kubeConfigFile = credentials.length === 0 ? '' : `${folder}/kubeconfig.yaml`
  const webhooks = (name: string, manifestsFolder: string | undefined) => ({
    name,
    configuration: {
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'WebhookAdmissionConfiguration',
      kubeConfigFile,
      ...(manifestsFolder !== undefined && { staticManifestsDir: `${folder}/${manifestsFolder}` }),
    },
  })
  return {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    plugins: [
      webhooks('MutatingAdmissionWebhook', manifests?.mutating),
      webhooks('ValidatingAdmissionWebhook', manifests?.validating),
      ...(manifests?.policies === undefined
        ? []
        : [
            {
              name: 'ValidatingAdmissionPolicy',
              configuration: {
                apiVersion: 'apiserver.config.k8s.io/v1',
                kind: 'ValidatingAdmissionPolicyConfiguration',
                staticManifestsDir: `${folder}/${manifests.policies}`,
              },
            },
          ]),
    ],
  }
}
