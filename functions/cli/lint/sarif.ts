import { packageVersion } from '../package.ts'
import type { Finding } from './findings.ts'

/** The findings as SARIF 2.1.0, which code hosts show beside the lines. */
export function toSarif(findings: readonly Finding[]): object {
  const rules = [...new Set(findings.map(({ code }) => code))].sort()
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'countersign lint',
            version: packageVersion(),
            rules: rules.map((id) => ({ id })),
          },
        },
        results: findings.map(({ code, severity, file, line, column, path, message }) => ({
          ruleId: code,
          level: severity,
          message: { text: path === '' ? message : `${path}: ${message}` },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: file.replaceAll('\\', '/') },
                ...(line > 0 && { region: { startLine: line, startColumn: column } }),
              },
            },
          ],
        })),
      },
    ],
  }
}
