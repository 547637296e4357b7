// Writes the query as a command line. The command reads the key from the environment, so that the shell's history does
// not contain the key.
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

/** Returns a delimiter that does not occur as a line of the text. */
function markerFor(json: string): string {
  let marker = 'JSON'
  while (json.split('\n').includes(marker)) marker += '_'
  return marker
}
