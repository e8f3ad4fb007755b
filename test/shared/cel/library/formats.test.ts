import { describe, expect, test } from 'vitest'
import { run, show } from '#test/shared/cel/run.ts'

/** The API server's named string formats, with its own words for what is wrong. */

describe('named formats: a text that has the format gives none', () => {
  test.each([
    { expression: "format.dns1123Label().validate('my-name')", gives: 'none', cost: 9 },
    { expression: "format.dns1123Subdomain().validate('a.b-c.d')", gives: 'none', cost: 16 },
    { expression: "format.dns1035Label().validate('abc-123')", gives: 'none', cost: 9 },
    {
      expression: "format.qualifiedName().validate('example.com/My_Name')",
      gives: 'none',
      cost: 31,
    },
    { expression: "format.dns1123LabelPrefix().validate('prefix-')", gives: 'none', cost: 9 },
    {
      expression: "format.dns1123SubdomainPrefix().validate('a.prefix-')",
      gives: 'none',
      cost: 16,
    },
    { expression: "format.dns1035LabelPrefix().validate('a-')", gives: 'none', cost: 9 },
    { expression: "format.labelValue().validate('')", gives: 'none', cost: 11 },
    { expression: "format.uri().validate('https://example.com/')", gives: 'none', cost: 829 },
    {
      expression: "format.uuid().validate('00000000-0000-4000-8000-000000000000')",
      gives: 'none',
      cost: 73,
    },
    { expression: "format.byte().validate('aGVsbG8=')", gives: 'none', cost: 22 },
    { expression: "format.date().validate('2024-02-29')", gives: 'none', cost: 37 },
    {
      expression: "format.datetime().validate('2024-02-29T12:00:00+01:00')",
      gives: 'none',
      cost: 55,
    },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('named formats: a text that has it not gives the faults', () => {
  test.each([
    {
      expression: "format.dns1123Label().validate('My_Name')",
      gives: `of ["a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"]`,
      cost: 9,
    },
    {
      expression: "format.dns1123Label().validate('a.b')",
      gives: 'of ["must not contain dots"]',
      cost: 9,
    },
    {
      expression: "format.dns1123Subdomain().validate('-a')",
      gives: `of ["a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]`,
      cost: 16,
    },
    {
      expression: "format.dns1035Label().validate('9a')",
      gives: `of ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"]`,
      cost: 9,
    },
    {
      expression: "format.qualifiedName().validate('/name')",
      gives: 'of ["prefix part must be non-empty"]',
      cost: 16,
    },
    {
      expression: "format.qualifiedName().validate('a/b/c')",
      gives: `of ["a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]`,
      cost: 16,
    },
    {
      expression: "format.labelValue().validate('-')",
      gives: `of ["a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"]`,
      cost: 11,
    },
    {
      expression: "format.uri().validate('no uri')",
      gives: 'of ["parse \\"no uri\\": invalid URI for request"]',
      cost: 277,
    },
    {
      expression: "format.uuid().validate('no uuid')",
      gives: 'of ["does not match the UUID format"]',
      cost: 19,
    },
    { expression: "format.byte().validate('abc')", gives: 'of ["invalid base64"]', cost: 22 },
    { expression: "format.date().validate('2023-02-29')", gives: 'of ["invalid date"]', cost: 37 },
    {
      expression: "format.datetime().validate('2024-02-29 12:00:00')",
      gives: 'of ["invalid datetime"]',
      cost: 37,
    },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})

describe('named formats: by name', () => {
  test.each([
    { expression: "format.named('dns1123Label').hasValue()", gives: 'true', cost: 2 },
    { expression: "format.named('unknown')", gives: 'none', cost: 1 },
    {
      expression: "format.named('date').value().validate('2024-13-01')",
      gives: 'of ["invalid date"]',
      cost: 38,
    },
    { expression: 'format.date() == format.date()', gives: 'true', cost: 3 },
    { expression: 'format.date() == format.datetime()', gives: 'false', cost: 3 },
  ])('$expression gives $gives at cost $cost', ({ expression, gives, cost }) => {
    const outcome = run(expression)
    expect(show(outcome)).toBe(gives)
    expect(outcome.cost).toBe(cost)
  })
})
