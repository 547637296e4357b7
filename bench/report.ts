// Writes measurements as Markdown tables into docs/performance.md.
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, release, type } from 'node:os'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import type { TestPostgres } from '../test/support/postgres.ts'

const PAGE = join(import.meta.dirname, '../docs/performance.md')

/** The date, the machine and the server of a run, as docs/performance.md shows them. */
export async function machine(postgres: TestPostgres): Promise<string> {
  const [[version] = []] = await postgres.query('postgres', 'SHOW server_version')
  const model = cpus()[0]?.model ?? 'unknown processor'
  const cores = `${availableParallelism()} cores shared with database and load generator`
  const date = new Date().toISOString().slice(0, 10)
  return `${date}, ${type()} ${release()}, ${model}, ${cores} (load ${loadavg()[0]?.toFixed(1)}), PostgreSQL ${version?.split(' ')[0]}`
}

export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Replaces the text between the marks of this name. Throws if the page has no marks with this name. */
export async function writeTable(name: string, text: string): Promise<void> {
  const page = await readFile(PAGE, 'utf8')
  const [open, close] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
  const [from, to] = [page.indexOf(open), page.indexOf(close)]
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no place for ${name}`)
  const written = `${page.slice(0, from)}${open}\n\n${text}\n\n${page.slice(to)}`
  await writeFile(PAGE, await format(written, { ...(await resolveConfig(PAGE)), filepath: PAGE }))
}
