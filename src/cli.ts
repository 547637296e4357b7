#!/usr/bin/env node
// The command line, `vitrine VERB`. Like main.ts, it checks the version of Node before it loads anything else.
import { fileURLToPath } from 'node:url'
import { nodeProblem } from './node-version.ts'

const problem = nodeProblem(process.version)
const argv = process.argv.slice(2)

if (problem !== null) {
  const { runUnderNewerNode } = await import('./run-newer-node.ts')
  process.exitCode = await runUnderNewerNode(fileURLToPath(import.meta.url), argv, problem)
} else {
  await import('./node-22-polyfills.ts')
  const { runVerb } = await import('./cli-commands.ts')
  process.exitCode = await runVerb(argv, process.env)
}
