// Writes a program that runs several test files in one process, which imports the service once.
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** The files run one after the other, each as a suite that is named like the file. */
export function inOneProcess(files: readonly string[]): string {
  const suites = files.map((file) => {
    const url = pathToFileURL(join(ROOT, file)).href
    return `describe(${JSON.stringify(file)}, async () => { await import(${JSON.stringify(url)}) })`
  })
  return ["import { describe } from 'node:test'", ...suites, ''].join('\n')
}
