// Prints the sizes of the built console beside their budgets: `npm run prepare`, then `npm run bench:console`.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const FOLDER = fileURLToPath(new URL('../dist/console/', import.meta.url))
const [FIRST_LOAD_KB, LAZY_KB, EDITOR_KB] = [185, 40, 150]

const gzipped = (file: string) => gzipSync(readFileSync(join(FOLDER, file)), { level: 9 }).length / 1000

function line(what: string, value: number, limit: number): void {
  const verdict = value <= limit ? 'ok' : 'OVER'
  process.stdout.write(`${verdict.padEnd(5)} ${value.toFixed(1).padStart(7)} of ${limit} kB gz  ${what}\n`)
}

function sizes(): void {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8')
  const named = [...page.matchAll(/(?:src|href)="\/app\/([^"]+\.(?:js|css))"/g)].map((match) => match[1] ?? '')
  line(
    'first load (index.html names it)',
    named.map(gzipped).reduce((sum, each) => sum + each, 0),
    FIRST_LOAD_KB,
  )
  for (const file of globSync('assets/*.js', { cwd: FOLDER }).sort()) {
    if (named.includes(file)) continue
    const isEditor = /editor/i.test(file)
    const size = gzipped(file)
    if (size > 5) line(basename(file), size, isEditor ? EDITOR_KB : LAZY_KB)
  }
}

if (!existsSync(FOLDER)) throw new Error('The console is not built. Run npm run prepare.')
sizes()
