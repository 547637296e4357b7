// Runs the code blocks of a docs page in one shell, in an empty folder.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const SEPARATOR = '----8<----'

/** Runs the blocks, and returns their outputs. */
export async function follow(blocks: readonly string[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-page-'))
  try {
    const shell = spawn('sh', ['-u'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const output = text(shell.stdout)
    shell.stdin.end(blocks.map((block) => `${block}\nprintf '%s' '${SEPARATOR}'\n`).join(''))
    const [code] = await once(shell, 'close')
    assert.equal(code, 0)
    return (await output).split(SEPARATOR).slice(0, -1)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
