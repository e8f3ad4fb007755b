import { readFile } from 'node:fs/promises'

// biome-ignore lint/suspicious/noExplicitAny: parts of a template, which each test knows the shape of
export type Json = any

/** A CloudFormation template, as far as the tests read it. */
export interface Template {
  Resources: Record<string, Resource>
  Conditions?: Record<string, unknown>
  Outputs?: Record<string, unknown>
}

export interface Resource {
  Type: string
  Condition?: string
  Properties: Record<string, Json>
  DeletionPolicy?: string
}

/** The template of a file with its conditions decided: what CloudFormation would make of it. */
export async function readTemplate(file: string): Promise<Template> {
  const template = JSON.parse(await readFile(file, 'utf8')) as Template
  const isTrue = (name: string) => truth(template, { Condition: name })
  const kept = Object.entries(template.Resources).filter(
    ([, { Condition }]) => Condition === undefined || isTrue(Condition),
  )
  const resources = decided(Object.fromEntries(kept), isTrue) as Template['Resources']
  return { ...template, Resources: resources }
}

/** The resources of a type, by logical id. */
export function ofType(template: Template, type: string): Record<string, Resource['Properties']> {
  const found = Object.entries(template.Resources).filter(([, { Type }]) => Type === type)
  return Object.fromEntries(found.map(([id, { Properties }]) => [id, Properties]))
}

/** Every statement that counts for a role, its own first. */
export function statements(template: Template, role: string): object[] {
  const own = template.Resources[role]?.Properties.Policies ?? []
  const attached = Object.values(ofType(template, 'AWS::IAM::Policy')).filter(({ Roles }) =>
    Roles.some(({ Ref }: Json) => Ref === role),
  )
  return [...own, ...attached].flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
}

function truth(template: Template, condition: Json): boolean {
  if (typeof condition.Condition === 'string') {
    return truth(template, template.Conditions?.[condition.Condition])
  }
  const { 'Fn::Equals': equal, 'Fn::Not': not, 'Fn::And': and } = condition
  if (equal !== undefined) return equal[0] === equal[1]
  if (not !== undefined) return !truth(template, not[0])
  if (and !== undefined) return and.every((each: unknown) => truth(template, each))
  throw new TypeError(`cannot decide ${JSON.stringify(condition)}`)
}

/** The value without `Fn::If`, and `Fn::Split` and `Fn::Select` of known text done. */
function decided(value: Json, isTrue: (name: string) => boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => decided(each, isTrue)).filter(isValue)
  if (value === null || typeof value !== 'object') return value
  const { 'Fn::If': choice, 'Fn::Split': split, 'Fn::Select': select } = value
  if (choice !== undefined) return decided(choice[isTrue(choice[0]) ? 1 : 2], isTrue)
  if (split !== undefined) return split[1].split(split[0])
  if (select !== undefined) return (decided(select[1], isTrue) as unknown[])[select[0]]
  const entries = Object.entries(value).map(([name, each]) => [name, decided(each, isTrue)])
  return Object.fromEntries(entries.filter(([, each]) => isValue(each)))
}

function isValue(value: Json): boolean {
  return value?.Ref !== 'AWS::NoValue'
}
