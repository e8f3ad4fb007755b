import { unreachable } from '#shared/errors.ts'
import { IMAGE_POLICY_KUBECONFIG, IMAGE_POLICY_PLUGIN } from '#shared/webhook/image-policy.ts'
import { admissionConfiguration, serverKubeconfig } from '#shared/webhook/server.ts'
import { kubernetesYaml } from '../kubernetes-yaml.ts'
import type { ImagePolicyPlan } from './image-policy.ts'
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
  IMAGE_POLICY_KUBECONFIG,
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
  return [...objectFiles(plan), ...serverFiles(plan, folder)]
}

function objectFiles(plan: Plan): OutputFile[] {
  if (plan.webhooks === undefined) return []
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
      ]
    case 'kustomize': {
      const files = [
        { ...objects, name: 'mutating-webhooks.yaml', objects: [mutating] },
        { ...objects, name: 'validating-webhooks.yaml', objects: [validating] },
        ...(hasCompanion ? [{ ...companion, name: 'companion.yaml' }] : []),
      ]
      return [kustomization(files.map(({ name }) => name)), ...files]
    }
    case 'image-policy':
      return []
    default:
      return unreachable(plan.flavour)
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
  const { target, credentials, flavour, companion, webhooks, imagePolicy } = plan
  const manifests = {
    mutating: 'mutating-webhooks',
    validating: 'validating-webhooks',
    ...(companion.length > 0 && { policies: 'validating-policies' }),
  }
  const options = {
    target,
    folder,
    credentials: webhooks === undefined ? [] : credentials,
    ...(flavour === 'static' && { manifests }),
    ...(imagePolicy && { imagePolicy: imagePolicy.policy }),
  }
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
              ...imagePolicyComments(plan),
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
    ...(imagePolicy === undefined ? [] : [imagePolicyKubeconfig(plan, imagePolicy)]),
  ]
}

function imagePolicyComments({ imagePolicy }: Plan): string[] {
  if (imagePolicy === undefined) return []
  return [
    `${IMAGE_POLICY_PLUGIN} is off until the API server is also started with it in --enable-admission-plugins.`,
    ...imagePolicy.notes,
  ]
}

function imagePolicyKubeconfig(
  { cluster, token, credentials, ca }: Plan,
  { kubeconfig }: ImagePolicyPlan,
): OutputFile {
  return {
    name: IMAGE_POLICY_KUBECONFIG,
    isForServer: true,
    isSecret: !token.isPlaceholder,
    comments: [
      `Where ${IMAGE_POLICY_PLUGIN} of cluster ${cluster.name} asks.`,
      token.isPlaceholder
        ? `Replace ${token.text} in the URL by the token of the cluster before an API server reads this.`
        : 'The URL holds the token of the cluster: nobody but the API server may read this.',
      ...(credentials.length === 0 ? [] : ['Names files beside it, which hold other secrets.']),
      ca === undefined
        ? 'Trusted are the public authorities that the machine of the API server knows.'
        : `Trusted are the certificates in it; the first of them ends on ${ca.until}.`,
    ],
    objects: [kubeconfig],
  }
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

/** The YAML text of a file. */
export function yamlOf({ comments, objects }: Pick<OutputFile, 'comments' | 'objects'>): string {
  const head = comments.map((line) => `# ${line}\n`).join('')
  const documents = objects.map(kubernetesYaml)
  return `${head}${documents.join('---\n')}`
}
