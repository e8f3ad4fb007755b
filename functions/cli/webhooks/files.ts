import { stringify } from 'yaml'
import { admissionConfiguration, serverKubeconfig } from '#shared/webhook/server.ts'
import type { Plan } from './plan.ts'

/** One file of an answer. */
export interface OutputFile {
  /** Relative, with `/`. */
  name: string
  /** Read by the API server itself, and no object of the API. */
  isForServer: boolean
  /** Holds the token of the cluster. */
  isSecret: boolean
  objects: readonly object[]
  /** What stands above the objects, a line each. */
  comments: readonly string[]
}

/** Every name there may be. */
export const FILE_NAMES: readonly string[] = [
  'admission-configuration.yaml',
  'companion.yaml',
  'kubeconfig.yaml',
  'kustomization.yaml',
  'mutating-webhooks.yaml',
  'mutating-webhooks/countersign.yaml',
  'validating-policies/countersign.yaml',
  'validating-webhooks.yaml',
  'validating-webhooks/countersign.yaml',
  'webhooks.yaml',
]

const COMPANION_COMMENTS = [
  'Evaluated by the API server itself, after mutating webhooks: it sees what image verification wrote and cannot tell it from what',
  'somebody else wrote. Only the validate webhook, which opens the seal, decides whether an image is verified.',
]

/** The files of a plan, the same to the byte for the same plan. `folder` is where those of the API server will be on its machine. */
export function filesOf(plan: Plan, folder: string): OutputFile[] {
  const { mutating, validating } = plan.webhooks
  const isSecret = !plan.token.isPlaceholder
  const comments = webhookComments(plan)
  const objects = { isForServer: false, isSecret, comments }
  const companion = {
    isForServer: false,
    isSecret: false,
    comments: COMPANION_COMMENTS,
    objects: plan.companion,
  }
  const hasCompanion = plan.companion.length > 0
  switch (plan.flavour) {
    case 'url':
      return [
        { ...objects, name: 'webhooks.yaml', objects: [mutating, validating] },
        ...(hasCompanion ? [{ ...companion, name: 'companion.yaml' }] : []),
        ...serverFiles(plan, folder),
      ]
    case 'static':
      return [
        {
          ...objects,
          isForServer: true,
          name: 'mutating-webhooks/countersign.yaml',
          objects: [mutating],
        },
        {
          ...objects,
          isForServer: true,
          name: 'validating-webhooks/countersign.yaml',
          objects: [validating],
        },
        ...(hasCompanion
          ? [{ ...companion, isForServer: true, name: 'validating-policies/countersign.yaml' }]
          : []),
        ...serverFiles(plan, folder),
      ]
    case 'kustomize': {
      const files = [
        { ...objects, name: 'mutating-webhooks.yaml', objects: [mutating] },
        { ...objects, name: 'validating-webhooks.yaml', objects: [validating] },
        ...(hasCompanion ? [{ ...companion, name: 'companion.yaml' }] : []),
      ]
      return [kustomization(files.map(({ name }) => name)), ...files, ...serverFiles(plan, folder)]
    }
  }
}

function kustomization(resources: string[]): OutputFile {
  return {
    name: 'kustomization.yaml',
    isForServer: false,
    isSecret: false,
    comments: [
      'A base: overlays may add selectors and labels. Names of webhooks are what image verification is known by in messages.',
    ],
    objects: [{ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources }],
  }
}

function serverFiles(plan: Plan, folder: string): OutputFile[] {
  const { endpoint, credentials, flavour, companion } = plan
  const manifests = {
    mutating: 'mutating-webhooks',
    validating: 'validating-webhooks',
    ...(companion.length > 0 && { policies: 'validating-policies' }),
  }
  const options = { endpoint, folder, credentials, ...(flavour === 'static' && { manifests }) }
  const configuration = admissionConfiguration(options)
  const kubeconfig = serverKubeconfig(options)
  const common = { isForServer: true, isSecret: false }
  return [
    ...(configuration === undefined
      ? []
      : [
          {
            ...common,
            name: 'admission-configuration.yaml',
            comments: [
              `Belongs into ${folder} on every machine with an API server, which is started with`,
              `--admission-control-config-file=${folder}/admission-configuration.yaml; merge it with the one that is there.`,
              'ImagePolicyWebhook is not among the plugins: the functions have no /image-review to call.',
            ],
            objects: [configuration],
          },
        ]),
    ...(kubeconfig === undefined
      ? []
      : [
          {
            ...common,
            name: 'kubeconfig.yaml',
            comments: ['Names files beside it, which hold the secrets; nothing in here is one.'],
            objects: [kubeconfig],
          },
        ]),
  ]
}

function webhookComments({ cluster, token, notes }: Plan): string[] {
  return [
    `Image verification of cluster ${cluster.name}, written by \`countersign webhooks\`.`,
    token.isPlaceholder
      ? `Replace ${token.text} in every URL by the token of the cluster before this is applied.`
      : 'The URLs hold the token of the cluster: keep this as a secret, and who may read webhook configurations in the cluster few.',
    ...notes.filter(({ path }) => path === `cluster ${cluster.name}`).map(({ message }) => message),
  ]
}

/** The YAML text of a file. Kubernetes reads YAML 1.1, where `no` and `y` are booleans: they are quoted. */
export function yamlOf({ comments, objects }: Pick<OutputFile, 'comments' | 'objects'>): string {
  const head = comments.map((line) => `# ${line}\n`).join('')
  const documents = objects.map((object) =>
    stringify(object, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false }),
  )
  return `${head}${documents.join('---\n')}`
}
