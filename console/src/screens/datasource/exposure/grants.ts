// Pure: SQL by which a PostgreSQL database itself refuses what an exposure hides.
import type { Choice } from './choice.ts'
import { shownIn, type SchemaNode } from './nodes.ts'

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
/** A line break in a name would end the comment. */
const inComment = (name: string) => JSON.stringify(name)

export function grantsFor(schemas: readonly SchemaNode[], choice: Choice, login: string): string {
  const to = quoted(login)
  const lines = [
    `-- Lets the login ${inComment(login)} read what the exposure shows, and nothing else.`,
    '-- It binds only a login that owns nothing and is no superuser. Rights that it has from PUBLIC or from other',
    '-- roles stay: take them from PUBLIC and from those roles.',
    'BEGIN;',
  ]
  for (const { name, tables } of schemas) {
    lines.push(`REVOKE ALL ON ALL TABLES IN SCHEMA ${quoted(name)} FROM ${to};`)
    const granted = tables.flatMap((node) => {
      const shown = shownIn(node, choice)
      if (shown.size === 0) return []
      const columns = node.columns.map(({ of }) => of.name).filter((column) => shown.has(column))
      const some = columns.length === node.columns.length ? '' : ` (${columns.map(quoted).join(', ')})`
      return [`GRANT SELECT${some} ON ${quoted(name)}.${quoted(node.of.table)} TO ${to};`]
    })
    if (granted.length > 0) lines.push(`GRANT USAGE ON SCHEMA ${quoted(name)} TO ${to};`, ...granted)
  }
  return [...lines, 'COMMIT;'].join('\n')
}
