// The docs and the code must agree: every error code, operation, environment variable and command has a heading, every
// database kind has a page, and no heading describes something that was removed. Also checks links and citations.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { readConfig, VERSION } from '../src/config.ts'
import { OPEN_ROUTES } from '../src/contract/routes-without-token.ts'
import { ROUTES } from '../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../src/contract/signed-in-routes.ts'
import { TeamSettings } from '../src/contract/schemas.ts'
import { STATUS } from '../src/errors.ts'
import { holding } from '../src/teams/team-settings.ts'
import { VERBS } from '../src/cli-commands.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(ROOT + path, 'utf8')

function headings(path: string, pattern: RegExp): string[] {
  return [...read(path).matchAll(/^###? (.+)$/gm)].map((match) => match[1] ?? '').filter((text) => pattern.test(text))
}

const sorted = (names: Iterable<string>) => [...names].sort()

test('every error code has a heading in docs/errors.md under its status', () => {
  assert.deepEqual(sorted(headings('docs/errors.md', /^[A-Z_]{3,}$/)), sorted(Object.keys(STATUS)))
  let status = 0
  for (const heading of headings('docs/errors.md', /./)) {
    if (/^\d{3}$/.test(heading)) status = Number(heading)
    else assert.equal(new Map<string, number>(Object.entries(STATUS)).get(heading), status, heading)
  }
})

test('every operation has a heading in docs/api.md with its method and path', () => {
  const routes = { ...ROUTES, ...SESSION_ROUTES, ...OPEN_ROUTES }
  assert.deepEqual(sorted(headings('docs/api.md', /^[a-z]+[A-Z]\w+$/)), sorted(Object.keys(routes)))
  for (const [id, { method, path }] of Object.entries(routes)) {
    assert.match(
      read('docs/api.md'),
      new RegExp(`### ${id}\n\n\`${method} ${path.replace(/[{}]/g, String.raw`\$&`)}\``),
    )
  }
})

test('the table of team settings in docs/operating.md matches the code', () => {
  const rows = [
    ...read('docs/operating.md').matchAll(/^\| `([a-z][\w.]+)` +\| (\S+) +\| (\S+) +\| (\S+) +\| (\S+) +\|$/gm),
  ]
  const documented = rows.map((row) => row.slice(1))
  const { properties = {} } = z.toJSONSchema(TeamSettings)
  const leaves = (parent: object, path: readonly string[] = []): readonly (readonly string[])[] =>
    Object.entries(parent).flatMap(([name, value]: [string, unknown]) =>
      typeof value === 'object' && value !== null ? leaves(value, [...path, name]) : [[...path, name]],
    )
  const defaults = holding('{}', {})
  const at = (from: unknown, path: readonly string[]): unknown =>
    path.reduce((value: unknown, name) => (value as Record<string, unknown>)[name], from)
  const expected = leaves(defaults).map((path) => {
    const schema = at(
      properties,
      path.flatMap((name, n) => (n === 0 ? [name] : ['properties', name])),
    ) as Record<string, unknown>
    return [path.join('.'), at(defaults, path), schema['minimum'] ?? '–', schema['maximum'] ?? '–'].map(String)
  })
  assert.deepEqual(
    documented.map((row) => row.slice(0, 4)),
    expected,
  )
  const ceilings = documented.filter(([, , , , name]) => name !== '–')
  assert.deepEqual(
    ceilings.map(([, , , , name = '']) => Object.keys(readConfig({ [name.replaceAll('`', '')]: '1' }).ceilings)),
    ceilings.map(([setting = '']) => [setting.split('.')[0]]),
  )
  assert.equal(ceilings.length, read('src/config.ts').match(/'VITRINE_MAX_\w+'/g)?.length)
})

test('every environment variable has a heading in docs/operating.md', () => {
  const names = [...read('src/config.ts').matchAll(/'((?:VITRINE_[A-Z_]+)|PORT|HOST|[A-Z]+_URL|LOG_LEVEL)'/g)]
  // Some names are known only to be refused. They have no heading.
  const refused = [...read('src/config.ts').matchAll(/`?'?([A-Z_]+): this version/g)].map((match) => match[1] ?? '')
  const known = new Set(names.map((match) => match[1] ?? '').filter((name) => !refused.includes(name)))
  assert.deepEqual(
    sorted(headings('docs/operating.md', /^(VITRINE_[A-Z_]+|PORT|HOST|[A-Z]+_URL|LOG_LEVEL)(,|$)/).flatMap(namesOf)),
    sorted(known),
  )
})

test('only main.ts and cli.ts read process.env', () => {
  const files = globSync('src/**/*.ts', { cwd: ROOT }).filter((file) => !file.endsWith('.test.ts'))
  const readers = files.filter((file) => /process\.env/.test(read(file)))
  assert.deepEqual(sorted(readers), ['src/cli.ts', 'src/main.ts'])
})

test('every command of the CLI has a heading in docs/operating.md', () => {
  assert.deepEqual(
    sorted(headings('docs/operating.md', /^vitrine \w+$/)),
    sorted(Object.keys(VERBS).map((verb) => `vitrine ${verb}`)),
  )
})

test('every database kind has a page in docs/drivers', () => {
  const kinds = globSync('src/drivers/*/driver.ts', { cwd: ROOT }).map((path) => path.split('/')[2] ?? '')
  assert.deepEqual(
    sorted(globSync('docs/drivers/*.md', { cwd: ROOT }).map((path) => path.slice('docs/drivers/'.length, -3))),
    sorted(kinds),
  )
})

test('relative links in the docs resolve', () => {
  const pages = [...globSync('docs/**/*.md', { cwd: ROOT }), ...globSync('*.md', { cwd: ROOT })]
  for (const page of pages) {
    for (const [, link = ''] of read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
      const target = new URL(link, new URL(page, `file://${ROOT}`))
      assert.ok(globSync(fileURLToPath(target)).length > 0, `${page}: ${link}`)
    }
  }
})

/** Matches a file name with an optional path and heading, but no URLs, glob patterns or placeholders. */
const CITED =
  /(?<![\w./:$*{}<>…-])((?:\.{1,2}\/)*(?:[\w.-]+\/)*\w[\w-]*(?:\.[\w-]+)*\.(?:ts|md|sql))(?![\w(/-])(?:#([\w-]+)|,? §(\d+))?/g

const FILES = globSync('**/*.{ts,md,sql}', {
  cwd: ROOT,
  exclude: (path) => /(?:^|\/)(?:node_modules|dist(?:-package)?|data)$/.test(path),
})

/** Finds the files that a citation may mean: next to the citing file, from the root, or by the end of a path. */
function filesOf(cited: string, citing: string): string[] {
  const beside = posix.join(posix.dirname(citing), cited)
  return FILES.filter((file) => file === cited || file === beside || file.endsWith(`/${cited}`))
}

/** Returns the heading anchors of a page, as GitHub generates them. */
function anchorsOf(page: string): Set<string> {
  const titles = [...withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)
  return new Set(
    titles.map((title) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function hasHeading(page: string, anchor: string | undefined, section: string | undefined): boolean {
  if (anchor !== undefined) return anchorsOf(page).has(anchor)
  return section === undefined || new RegExp(`^#+ ${section}(?![\\w])`, 'm').test(read(page))
}

const withoutCode = (text: string) => text.replace(/^```[^]*?^```/gm, '')

function commentsOf(source: string): string {
  const lines = source.split('\n').map((line) => /^\s*(?:\/\/|\/\*|\*)(.*)|\s\/\/ (.*)/.exec(line))
  return lines.map((match) => match?.[1] ?? match?.[2] ?? '').join('\n')
}

function brokenCitations(file: string, text: string): string[] {
  return [...text.matchAll(CITED)]
    .filter(([, cited = '', anchor, section]) => {
      const found = filesOf(cited, file)
      return !found.some((page) => hasHeading(page, anchor, section))
    })
    .map(([citation]) => `${file} cites ${citation}`)
}

test('every file and heading that a comment cites exists', () => {
  const sources = FILES.filter((file) => /^(?:src|test|bench|scripts|demo)\/.*\.ts$/.test(file))
  assert.deepEqual(
    sources.flatMap((file) => brokenCitations(file, commentsOf(read(file)))),
    [],
  )
})

test('every file and heading that a page cites exists', () => {
  const pages = FILES.filter((file) => /^(?:docs\/.*|[A-Z]+)\.md$/.test(file) && file !== 'CHANGELOG.md')
  assert.deepEqual(
    pages.flatMap((page) => brokenCitations(page, withoutCode(read(page)))),
    [],
  )
})

test('links to headings resolve', () => {
  const broken = FILES.filter((file) => /^(?:docs\/.*|[A-Z]+)\.md$/.test(file)).flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
      .filter(([, link = '', anchor = '']) => {
        const target = link === '' ? page : posix.join(posix.dirname(page), link)
        return !FILES.includes(target) || !anchorsOf(target).has(anchor)
      })
      .map(([citation]) => `${page}: ${citation}`),
  )
  assert.deepEqual(broken, [])
})

test('broken citations are detected', () => {
  const cites = (text: string) => brokenCitations('src/errors.ts', text).length
  assert.deepEqual(
    [
      'docs/errors.md',
      'see config.ts',
      'docs/guard.md#the-guard',
      '../bench/run.ts',
      'https://x.test/y.md',
      '`<kind>.test.ts`',
    ].map(cites),
    [0, 0, 0, 0, 0, 0],
  )
  assert.deepEqual(
    ['session-interface.md', 'docs/errors.md#none', 'docs/errors.md §3', 'src/no-such.ts', '(no-such.test.ts)'].map(
      cites,
    ),
    [1, 1, 1, 1, 1],
  )
})

test('each decision has a unique number, in its heading and in the list', () => {
  const pages = sorted(globSync('docs/decisions/[0-9]*.md', { cwd: ROOT }).map((path) => posix.basename(path)))
  const listed = [...read('docs/decisions/README.md').matchAll(/^\| \[(\d{4})\]\((\S+)\)/gm)]
  assert.deepEqual(sorted(listed.map(([, , page]) => page ?? '')), pages)
  for (const [, number, page = ''] of listed) assert.equal(page.slice(0, 4), number)
  for (const page of pages) assert.ok(read(`docs/decisions/${page}`).startsWith(`# ${page.slice(0, 4)}`), page)
  assert.equal(new Set(pages.map((page) => page.slice(0, 4))).size, pages.length)
})

test('VERSION matches package.json', () => {
  assert.equal(VERSION, JSON.parse(read('package.json')).version)
})

/**
 * Returns the environment variables in a heading. A heading may name several: `VITRINE_MAX_ROW_CAP and VITRINE_MAX_…`.
 */
function namesOf(heading: string): string[] {
  return heading.match(/[A-Z][A-Z_]+/g) ?? []
}
