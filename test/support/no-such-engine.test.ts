// If an engine is missing, a test is skipped on a developer’s machine, and fails in CI.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { inOneProcess } from './in-one-process.ts'
import { engineOrSkip, NoSuchEngine, skipWithout } from './no-such-engine.ts'

const ROOT = join(import.meta.dirname, '../..')
const startMissing = (): Promise<AsyncDisposable> => Promise.reject(new NoSuchEngine('Not available.'))

async function withSetting<T>(engines: string | undefined, work: () => Promise<T>): Promise<T> {
  const previous = process.env['TEST_ENGINES']
  const set = (value: string | undefined): void => {
    if (value === undefined) delete process.env['TEST_ENGINES']
    else process.env['TEST_ENGINES'] = value
  }
  set(engines)
  try {
    return await work()
  } finally {
    set(previous)
  }
}

test('a test whose engine is missing and optional is skipped with one line', async () => {
  const skips: (string | undefined)[] = []
  const t = { skip: (message?: string) => void skips.push(message) }
  assert.equal(await withSetting(undefined, () => engineOrSkip(t, startMissing)), null)
  assert.deepEqual(skips, ['Not available.'])
  assert.equal(await withSetting(undefined, () => skipWithout(startMissing)), 'Not available.')
})

test('a missing engine is an error if engines are required, and every other failure is always an error', async () => {
  const t = { skip: () => assert.fail('skipped') }
  await assert.rejects(
    withSetting('required', () => engineOrSkip(t, startMissing)),
    NoSuchEngine,
  )
  await assert.rejects(
    withSetting('required', () => skipWithout(startMissing)),
    NoSuchEngine,
  )
  await assert.rejects(
    withSetting(undefined, () => skipWithout(() => Promise.reject(new Error('it ended')))),
    /it ended/,
  )
})

test('if the engine exists, no test is skipped, and the server that the check started is ended', async () => {
  let ended = 0
  const engine = { [Symbol.asyncDispose]: async () => void ended++ }
  assert.equal(await skipWithout(async () => engine), false)
  assert.equal(ended, 1)
})

async function filesWithMongo(): Promise<string[]> {
  const files: string[] = []
  for await (const file of glob(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: ROOT })) {
    if (/\b(?:startMongod|startNewest)\(?/.test(await readFile(join(ROOT, file), 'utf8'))) files.push(file)
  }
  return files.sort()
}

test('with TEST_ENGINES=required, no MongoDB test file passes or skips without its engines', async () => {
  const files = (await filesWithMongo()).filter((file) => !file.endsWith('no-such-engine.test.ts'))
  assert.ok(files.length >= 7, files.join())
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-no-engines-'))
  try {
    const { NODE_TEST_CONTEXT: _nested, ...own } = process.env
    const emptyFolder = join(folder, 'empty')
    await mkdir(emptyFolder)
    const lacking = { TEST_MONGODB_URL: '', TEST_MONGODB_ENGINES: emptyFolder, PATH: emptyFolder }
    const env = { ...own, ...lacking, TEST_ENGINES: 'required' }
    // One process runs all files, because each process would import the service.
    const program = join(folder, 'program.mjs')
    await writeFile(program, inOneProcess(files))
    const run = ['--test-reporter=tap', program]
    const child = spawn(process.execPath, run, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] })
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')])
    const failed = [...output.matchAll(/^not ok \d+ - (.*)$/gm)].map(([, name]) => name)
    assert.deepEqual(failed, files)
    assert.doesNotMatch(output, /# SKIP/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
