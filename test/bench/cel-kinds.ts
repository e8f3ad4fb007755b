import type { JsonValue } from '#shared/json.ts'

/** A kind of expression that policies are made of, and what it gives for `DEPLOYMENT`. */
export interface Kind {
  name: string
  expression: string
  value: boolean | string
  /** The expression with another pattern at every turn: nobody gains from having seen the last one. */
  fresh?: (turn: number) => string
}

const POD = 'object.spec.template.spec'

function nameOfAtMost(length: number): string {
  return `object.metadata.name.matches('^[a-z]([-a-z0-9]{0,${length - 2}}[a-z0-9])?$')`
}

/** The twelve kinds that speed is measured on. */
export const KINDS: readonly Kind[] = [
  { name: 'field compare', expression: `${POD}.serviceAccountName == 'payments'`, value: true },
  {
    name: 'numeric',
    expression: 'object.spec.replicas >= 2 && object.spec.replicas <= 10',
    value: true,
  },
  {
    name: 'has chain',
    expression: `has(object.metadata.labels) && has(object.metadata.labels.team) && has(${POD}.securityContext) && ${POD}.securityContext.runAsNonRoot == true`,
    value: true,
  },
  {
    name: 'all over five containers',
    expression: `${POD}.containers.all(c, has(c.resources) && has(c.resources.limits) && has(c.resources.limits.memory))`,
    value: true,
  },
  {
    name: 'nested all',
    expression: `${POD}.containers.all(c, c.ports.all(p, p.containerPort >= 1024 && p.protocol != 'SCTP'))`,
    value: true,
  },
  {
    name: 'strings',
    expression: `${POD}.containers[0].image.startsWith('registry.example.com/') && !${POD}.containers[0].image.endsWith(':latest') && object.metadata.name.contains('-')`,
    value: true,
  },
  {
    name: 'regex',
    expression: nameOfAtMost(63),
    value: true,
    fresh: (turn) => nameOfAtMost(20 + (turn % 40)),
  },
  {
    name: 'in list',
    expression: `${POD}.dnsPolicy in ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']`,
    value: true,
  },
  {
    name: 'filter, map',
    expression: `${POD}.containers.filter(c, c.name != 'proxy').map(c, c.image).size() == 4`,
    value: true,
  },
  {
    name: 'message',
    expression:
      "'Deployment ' + object.metadata.namespace + '/' + object.metadata.name + ' asks for ' + string(object.spec.replicas) + ' replicas'",
    value: 'Deployment shop/payments-api asks for 3 replicas',
  },
  {
    name: 'capabilities',
    expression: `${POD}.containers.all(c, has(c.securityContext) && has(c.securityContext.capabilities) && c.securityContext.capabilities.drop.exists(d, d == 'ALL') && (!has(c.securityContext.capabilities.add) || c.securityContext.capabilities.add.all(a, a in ['NET_BIND_SERVICE'])))`,
    value: true,
  },
  {
    name: 'optional',
    expression: `object.?spec.?template.?spec.?priorityClassName.orValue('none') != 'system-node-critical'`,
    value: true,
  },
]

function container(name: string, port: number): JsonValue {
  return {
    name,
    image: `registry.example.com/shop/${name}:1.4.2`,
    args: ['--port', String(port), '--log', 'json'],
    env: [{ name: 'MODE', value: 'production' }],
    ports: [
      { name: 'http', containerPort: port, protocol: 'TCP' },
      { name: 'metrics', containerPort: port + 1000, protocol: 'TCP' },
    ],
    resources: {
      requests: { cpu: '100m', memory: '64Mi' },
      limits: { cpu: '500m', memory: '256Mi' },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
    },
  }
}

/** A Deployment of five containers. */
export const DEPLOYMENT: { [key: string]: JsonValue } = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name: 'payments-api',
    namespace: 'shop',
    labels: { app: 'payments-api', team: 'payments' },
    annotations: { owner: 'team-payments' },
  },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: 'payments-api' } },
    template: {
      metadata: { labels: { app: 'payments-api', team: 'payments' } },
      spec: {
        serviceAccountName: 'payments',
        dnsPolicy: 'ClusterFirst',
        securityContext: { runAsNonRoot: true, runAsUser: 10_001 },
        containers: [
          container('api', 8080),
          container('worker', 8081),
          container('cache', 8082),
          container('proxy', 8083),
          container('metrics', 8084),
        ],
      },
    },
  },
}
