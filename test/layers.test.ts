// The arrows of ARCHITECTURE.md: which room may import which. Down and past, never up or sideways.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const SRC = fileURLToPath(new URL('../src/', import.meta.url))

/** From the top down; those on one line do not know each other. */
const ORDER: readonly (readonly string[])[] = [
  ['main', 'cli'],
  ['verbs'],
  ['serve'],
  ['demo'],
  ['app'],
  ['rooms'],
  ['http'],
  ['operations'],
  ['query', 'what-if'],
  ['introspection', 'descriptions'],
  ['datasources'],
  ['documentation'],
  ['exposure'],
  ['profiles'],
  ['teams', 'sign-in'],
  ['auth'],
  ['audit'],
  ['drivers', 'jobs', 'secrets', 'mail'],
  ['store'],
  ['log'],
  ['config'],
  ['contract'],
  ['errors', 'ids', 'bounded-map'],
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

/** `src/http/server.ts` → http; `src/app.ts` → app. */
function room(path: string): string {
  return (path.split('/')[0] ?? '').replace(/\.ts$/, '')
}

/** Within src; what lies beside it is `outside`. */
function target(each: Import): string | null {
  return each.to.startsWith('.') ? normalize(join(dirname(each.file), each.to)) : null
}

const isOutside = (each: Import) => target(each)?.startsWith('..') === true

function level(name: string): number {
  const index = ORDER.findIndex((rooms) => rooms.includes(name))
  assert.notEqual(index, -1, `src/${name} has no place in the order of rooms`)
  return index
}

const say = (each: Import) => `${each.file} imports ${each.to}`

test('the imports are found', () => {
  assert.ok(imports.length > files.length)
  assert.ok(imports.some((each) => each.typeOnly) && imports.some((each) => !each.typeOnly))
})

test('imports point down', () => {
  const wrong = imports.filter((each) => {
    const to = target(each)
    if (to === null || room(to) === room(each.file) || isOutside(each)) return false
    // Types of the wire, and of whoever calls, are for everybody.
    if (each.typeOnly && (room(to) === 'contract' || to === 'auth/caller.ts')) return false
    return level(room(each.file)) >= level(room(to))
  })
  assert.deepEqual(wrong.map(say), [])
})

test('nothing outside src is imported but the demo, by its one file', () => {
  const wrong = imports.filter((each) => isOutside(each) && !(each.file === 'demo.ts' && /^\.\.\/demo\//.test(each.to)))
  assert.deepEqual(wrong.map(say), [])
})

test('a door imports operations, auth, contract and errors only', () => {
  const wrong = imports.filter((each) => {
    const to = target(each)
    if (room(each.file) !== 'http' || to === null || room(to) === 'http') return false
    return !/^(operations|auth|contract|errors)$/.test(room(to))
  })
  assert.deepEqual(wrong.map(say), [])
})

test('drivers import nothing outside but errors', () => {
  const wrong = imports.filter((each) => {
    const to = target(each)
    return room(each.file) === 'drivers' && to !== null && room(to) !== 'drivers' && room(to) !== 'errors'
  })
  assert.deepEqual(wrong.map(say), [])
})

test('contract imports zod and errors only', () => {
  const wrong = imports.filter((each) => {
    const to = target(each)
    if (room(each.file) !== 'contract') return false
    return to === null ? each.to !== 'zod' : room(to) !== 'contract' && room(to) !== 'errors'
  })
  assert.deepEqual(wrong.map(say), [])
})

test('only rooms.ts chooses the drivers', () => {
  const wrong = imports.filter((each) => target(each) === 'drivers/index.ts' && each.file !== 'rooms.ts')
  assert.deepEqual(wrong.map(say), [])
})

test('one kind of database does not know another', () => {
  const kind = (path: string) => /^drivers\/(\w+)\//.exec(path)?.[1]
  const wrong = imports.filter((each) => {
    const [from, to] = [kind(each.file), kind(target(each) ?? '')]
    return from !== undefined && to !== undefined && from !== to
  })
  assert.deepEqual(wrong.map(say), [])
})

test('confine.ts and what it imports do no I/O', () => {
  for (const start of files.filter((file) => /^drivers\/\w+\/guard\/confine\.ts$/.test(file))) {
    const seen = new Set<string>([start])
    for (const file of seen) {
      for (const each of importsOf(file)) {
        if (each.typeOnly) continue
        const to = target(each)
        assert.notEqual(to, null, `${say(each)}: a guard must do no I/O`)
        if (to !== null) seen.add(to)
      }
    }
  }
})

test('only a guard seals', () => {
  const wrong = files.filter(
    (file) =>
      /import[^;]*\bseal\b[^;]*confined/.test(readFileSync(join(SRC, file), 'utf8')) &&
      !/^drivers\/\w+\/guard\/confine\.ts$/.test(file),
  )
  assert.deepEqual(wrong, [])
})
