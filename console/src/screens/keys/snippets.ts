// Examples for a new key: programs that send a query, and the configuration of an MCP client.
import type { Datasource } from '../../api/types.ts'

export const SNIPPETS = ['curl', 'Python', 'TypeScript', 'MCP'] as const
export type Snippet = (typeof SNIPPETS)[number]

export interface Example {
  readonly origin: string
  readonly key: string
  readonly teamId: string | undefined
  readonly datasourceId: string | undefined
  readonly type: Datasource['type'] | undefined
}

/** Returns the examples. Without a datasource, the programs list the teams instead. */
export function snippets(example: Example): Readonly<Record<Snippet, string>> {
  const { origin, key, teamId, datasourceId, type } = example
  const isQuery = teamId !== undefined && datasourceId !== undefined
  const url = isQuery ? `${origin}/teams/${teamId}/datasources/${datasourceId}/query` : `${origin}/teams`
  const body = type === 'MONGODB' ? { collection: 'orders', filter: {}, limit: 5 } : { sql: 'SELECT 1 AS one' }
  const json = JSON.stringify(body)
  return {
    curl: [
      `export VITRINE_KEY=${key}`,
      `curl -s ${url} \\`,
      `  -H "Authorization: Bearer $VITRINE_KEY"${isQuery ? ' \\' : ''}`,
      ...(isQuery ? [`  -H 'Content-Type: application/json' \\`, `  -d '${json}'`] : []),
    ].join('\n'),
    Python: [
      'import os, requests',
      '',
      `# export VITRINE_KEY=${key}`,
      `answer = requests.${isQuery ? 'post' : 'get'}(`,
      `    "${url}",`,
      `    headers={"Authorization": f"Bearer {os.environ['VITRINE_KEY']}"},`,
      ...(isQuery ? [`    json=${json.replaceAll('":', '": ')},`] : []),
      ')',
      'print(answer.json())',
    ].join('\n'),
    TypeScript: [
      `// export VITRINE_KEY=${key}`,
      `const answer = await fetch('${url}', {`,
      ...(isQuery ? [`  method: 'POST',`] : []),
      '  headers: {',
      '    authorization: `Bearer ${process.env.VITRINE_KEY}`,',
      ...(isQuery ? [`    'content-type': 'application/json',`] : []),
      '  },',
      ...(isQuery ? [`  body: JSON.stringify(${json}),`] : []),
      '})',
      'console.log(await answer.json())',
    ].join('\n'),
    MCP: JSON.stringify(
      { mcpServers: { vitrine: { type: 'http', url: `${origin}/mcp`, headers: { Authorization: `Bearer ${key}` } } } },
      null,
      2,
    ),
  }
}
