// The entry point of `npm start`. Checks the version of Node before loading code that an older version cannot parse.
const [major = 0] = process.versions.node.split('.').map(Number)

if (major < 24) {
  process.exitCode = 1
  process.stderr.write(
    `Vitrine needs Node 24 or newer. This is Node ${process.version}. Start Vitrine with npm start: npm ci installs ` +
      `the right Node (if install scripts are off, run: npm rebuild node).\n`,
  )
} else {
  const { serve } = await import('./serve.ts')
  await serve(process.env)
}

export {}
