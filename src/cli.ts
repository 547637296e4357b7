#!/usr/bin/env node
// The command line: runs `vitrine VERB`. Like main.ts, it checks the version of Node before it loads anything else.
const [major = 0] = process.versions.node.split('.').map(Number)

if (major < 24) {
  process.exitCode = 1
  process.stderr.write(`Vitrine needs Node 24 or newer. This is Node ${process.version}.\n`)
} else {
  const { runVerb } = await import('./verbs.ts')
  process.exitCode = await runVerb(process.argv.slice(2), process.env)
}

export {}
