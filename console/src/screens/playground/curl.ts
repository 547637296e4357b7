// Pure: the query as a command line. The key comes from the environment, so that it is not in the shell's history.
import type { Body } from './query-body.ts'

export function curlOf(origin: string, teamId: string, datasourceId: string, body: Body): string {
  const json = JSON.stringify(body, null, 2)
  const end = markerFor(json)
  return [
    `curl -sS '${origin}/teams/${teamId}/datasources/${datasourceId}/query' \\`,
    `  -H "Authorization: Bearer $VITRINE_KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  --data-binary @- <<'${end}'`,
    json,
    end,
  ].join('\n')
}

/** The delimiter must not occur as a line of the text. */
function markerFor(json: string): string {
  let marker = 'JSON'
  while (json.split('\n').includes(marker)) marker += '_'
  return marker
}
