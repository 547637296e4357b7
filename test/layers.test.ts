// Enforces the import rules of ARCHITECTURE.md: a room (a folder or file directly in src) imports only rooms below it.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const SRC = fileURLToPath(new URL('../src/', import.meta.url))

/** The rooms from top to bottom. Rooms on one line do not import each other. */
const ORDER: readonly (readonly string[])[] = [
  ['main', 'cli'],
  ['cli-commands', 'run-newer-node', 'node-22-polyfills', 'node-version'],
  ['serve'],
  ['demo'],
  ['app'],
  ['exported-metrics', 'shutdown'],
  ['composition-root', 'readiness', 'upkeep'],
  ['http', 'connector'],
  ['operations'],
  ['query', 'what-if'],
  ['introspection', 'descriptions', 'oauth', 'webhooks'],
  ['datasources'],
  ['documentation'],
  ['exposure'],
  ['profiles'],
  ['teams', 'sign-in'],
  ['auth', 'jobs'],
  ['audit', 'outbound-request'],
  ['drivers', 'secrets', 'mail'],
  ['store'],
  ['log', 'tracing'],
  ['config', 'compact-text'],
  ['contract'],
  [
    'deadline',
    'bounded-map',
    'hang-up',
    'end-http-parsing',
    'event-loop-slices',
    'metric-types',
    'clock-doubt',
    'concurrency-limit',
  ],
  ['errors', 'ids', 'fetch-package', 'host-names', 'reserved-words'],
]

interface Import {
  readonly file: string
  readonly to: string
  readonly typeOnly: boolean
}

const IMPORT =
  /^\s*(?:import|export)\s+(type\s+)?(?:([^'"]*?)\s+from\s+)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/gm

function importsOf(file: string): Import[] {
  const text = readFileSync(join(SRC, file), 'utf8')
  return [...text.matchAll(IMPORT)].map(([, type, names, from, lazy]) => ({
    file,
    to: from ?? lazy ?? '',
    typeOnly: type !== undefined || /^\{(\s*type\s+\w+( as \w+)?\s*,?)+\s*\}$/.test(names ?? ''),
  }))
}

const files = globSync('**/*.ts', { cwd: SRC }).filter((file) => !file.endsWith('.test.ts'))
const imports = files.flatMap(importsOf)

/** Returns the room of a file: `src/http/server.ts` → http; `src/app.ts` → app. */
function room(path: string): string {
  return (path.split('/')[0] ?? '').replace(/\.ts$/, '')
}

/** Returns the imported path relative to src, or null for a package. */
function target(entry: Import): string | null {
  return entry.to.startsWith('.') ? normalize(join(dirname(entry.file), entry.to)) : null
}

const isOutside = (entry: Import) => target(entry)?.startsWith('..') === true

function level(name: string): number {
  const index = ORDER.findIndex((rooms) => rooms.includes(name))
  assert.notEqual(index, -1, `src/${name} has no place in the order of rooms`)
  return index
}

const describeImport = (entry: Import) => `${entry.file} imports ${entry.to}`

test('the import pattern finds value imports and type imports', () => {
  assert.ok(imports.length > files.length)
  assert.ok(imports.some((entry) => entry.typeOnly) && imports.some((entry) => !entry.typeOnly))
})

test('imports point down', () => {
  const wrong = imports.filter((entry) => {
    const to = target(entry)
    if (to === null || room(to) === room(entry.file) || isOutside(entry)) return false
    // Every room may import the types of the contract and of the caller.
    if (entry.typeOnly && (room(to) === 'contract' || to === 'auth/caller.ts')) return false
    return level(room(entry.file)) >= level(room(to))
  })
  assert.deepEqual(wrong.map(describeImport), [])
})

test('only demo.ts imports from outside src, and only from demo/', () => {
  const wrong = imports.filter(
    (entry) => isOutside(entry) && !(entry.file === 'demo.ts' && /^\.\.\/demo\//.test(entry.to)),
  )
  assert.deepEqual(wrong.map(describeImport), [])
})

test('a door imports only operations, auth, contract, errors and rooms without a domain', () => {
  const wrong = imports.filter((entry) => {
    const to = target(entry)
    const door = room(entry.file)
    if (!/^(http|connector)$/.test(door) || to === null || room(to) === door) return false
    return !/^(operations|auth|contract|errors|compact-text|hang-up|end-http-parsing|event-loop-slices|bounded-map|metric-types|host-names)$/.test(
      room(to),
    )
  })
  assert.deepEqual(wrong.map(describeImport), [])
})

test('drivers import no other room than concurrency-limit, errors, event-loop-slices, host-names and reserved-words', () => {
  const wrong = imports.filter((entry) => {
    const to = target(entry)
    return (
      room(entry.file) === 'drivers' &&
      to !== null &&
      !/^(drivers|concurrency-limit|errors|event-loop-slices|host-names|reserved-words)$/.test(room(to))
    )
  })
  assert.deepEqual(wrong.map(describeImport), [])
})

test('contract imports only zod and errors', () => {
  const wrong = imports.filter((entry) => {
    const to = target(entry)
    if (room(entry.file) !== 'contract') return false
    return to === null ? entry.to !== 'zod' : room(to) !== 'contract' && room(to) !== 'errors'
  })
  assert.deepEqual(wrong.map(describeImport), [])
})

test('only composition-root.ts imports drivers/index.ts', () => {
  const wrong = imports.filter((entry) => target(entry) === 'drivers/index.ts' && entry.file !== 'composition-root.ts')
  assert.deepEqual(wrong.map(describeImport), [])
})

test('the drivers of two kinds of database do not import each other', () => {
  const kind = (path: string) => /^drivers\/(\w+)\//.exec(path)?.[1]
  const wrong = imports.filter((entry) => {
    const [from, to] = [kind(entry.file), kind(target(entry) ?? '')]
    return from !== undefined && to !== undefined && from !== to
  })
  assert.deepEqual(wrong.map(describeImport), [])
})

test('confine.ts imports no package, directly or indirectly, so the guard does no I/O', () => {
  for (const start of files.filter((file) => /^drivers\/\w+\/guard\/confine\.ts$/.test(file))) {
    const seen = new Set<string>([start])
    for (const file of seen) {
      for (const entry of importsOf(file)) {
        if (entry.typeOnly) continue
        const to = target(entry)
        assert.notEqual(to, null, `${describeImport(entry)}: a guard must do no I/O`)
        if (to !== null) seen.add(to)
      }
    }
  }
})

/**
 * The files of each list call each other, because a grammar or walk is recursive. No other files import each other in a
 * circle.
 */
const RECURSIVE = [
  'drivers/bigquery/guard/parse-expression.ts drivers/bigquery/guard/parse-from.ts drivers/bigquery/guard/parse-pipe.ts drivers/bigquery/guard/parse.ts',
  'drivers/bigquery/guard/resolve-from.ts drivers/bigquery/guard/resolve.ts',
  'drivers/mongodb/guard/stages/confine-pipeline.ts drivers/mongodb/guard/stages/join-stages.ts drivers/mongodb/guard/stages/stages.ts',
  'drivers/postgres/guard/walk/walk-expression.ts drivers/postgres/guard/walk/walk-from.ts drivers/postgres/guard/walk/walk-json.ts drivers/postgres/guard/walk/walk-select.ts',
]

test('files import each other in a circle only where a grammar is recursive', () => {
  const targets = new Map<string, string[]>(files.map((file) => [file, []]))
  for (const entry of imports) {
    const to = target(entry)
    if (to !== null && targets.has(to)) targets.get(entry.file)?.push(to)
  }
  const reach = new Map(files.map((file) => [file, reachable(targets, file)]))
  const circles = files.map((file) =>
    files.filter((other) => reach.get(file)?.has(other) && reach.get(other)?.has(file)),
  )
  assert.deepEqual(
    [...new Set(circles.map((circle) => circle.toSorted().join(' ')))].filter((c) => c !== '').toSorted(),
    RECURSIVE,
  )
})

function reachable(targets: ReadonlyMap<string, readonly string[]>, start: string): ReadonlySet<string> {
  const seen = new Set(targets.get(start))
  for (const file of seen) for (const next of targets.get(file) ?? []) seen.add(next)
  return seen
}

test('only a guard imports seal', () => {
  const wrong = files.filter(
    (file) =>
      /import \{[^}]*\bseal\b[^}]*\} from '[^']*confined/.test(readFileSync(join(SRC, file), 'utf8')) &&
      !/^drivers\/\w+\/guard\/confine\.ts$/.test(file),
  )
  assert.deepEqual(wrong, [])
})
