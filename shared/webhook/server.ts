import { compareTexts } from '../policy/types.ts'
import { type CallerCredential, userOf } from './caller.ts'
import { IMAGE_POLICY_PLUGIN, type ImagePolicy } from './image-policy.ts'
import type { WebhookTarget } from './types.ts'

/** What an API server is started with. */
export interface ServerOptions {
  /** What its webhooks call. */
  target: WebhookTarget
  /** Absolute folder on the machine of the API server where its files are. */
  folder: string
  /** What it shows to webhooks. */
  credentials: readonly CallerCredential[]
  /** Folders of manifest-based admission below it, by plugin; none for configurations that are objects. */
  manifests?: { mutating: string; validating: string; policies?: string }
  /** Of ImagePolicyWebhook; the plugin is not there when absent. */
  imagePolicy?: ImagePolicy
}

/**
 * The kubeconfig of an API server for its webhooks; undefined without credentials. It names files on that machine and holds no secret.
 * Users are found by the host of the webhook, with its port unless that is 443 (specs/serverless.md 1).
 */
export function serverKubeconfig(options: ServerOptions): object | undefined {
  const { target, credentials } = options
  if (credentials.length === 0) return undefined
  const names = [...new Set(hostsOf(target))].sort(compareTexts)
  const users = names.map((name) => ({ name, user: userOf(options) }))
  return { apiVersion: 'v1', kind: 'Config', users }
}

/** What the API server looks users up by: the host as the URL has it, letter by letter, or the name of a Service in the cluster. */
function hostsOf(target: WebhookTarget): string[] {
  if (target.kind === 'service') {
    const { name, namespace, port = 443 } = target
    return [userName(`${name}.${namespace}.svc`, String(port))]
  }
  const { base } = target
  const urls = typeof base === 'string' ? [base] : [base.mutate, base.validate]
  return urls.map((url) => {
    const { host = '', port } = AUTHORITY.exec(url)?.groups ?? {}
    return userName(host, port)
  })
}

/** It looks for `host:port`, and for 443 then for the host alone; where it adds the port itself, brackets of an address are put in brackets. */
function userName(host: string, port: string | undefined): string {
  if (host.startsWith('[')) return port === undefined ? `[${host}]:443` : `${host}:${port}`
  return port === undefined || port === '443' ? host : `${host}:${port}`
}

const AUTHORITY = /^https:\/\/(?<host>\[[^\]]*\]|[^/?#:]*)(?::(?<port>[0-9]+))?/i

/** The AdmissionConfiguration that leads to kubeconfigs and to manifests; undefined when an API server needs none. */
export function admissionConfiguration(options: ServerOptions): object | undefined {
  const plugins = [...webhookPlugins(options), ...imagePolicyPlugins(options)]
  if (plugins.length === 0) return undefined
  return { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins }
}

function webhookPlugins({ folder, credentials, manifests }: ServerOptions): object[] {
  if (credentials.length === 0 && manifests === undefined) return []
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
  return [
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
  ]
}

function imagePolicyPlugins({ imagePolicy }: ServerOptions): object[] {
  return imagePolicy === undefined
    ? []
    : [{ name: IMAGE_POLICY_PLUGIN, configuration: { imagePolicy } }]
}
