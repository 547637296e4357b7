// What `npm start` runs. Looks at the version of Node before anything is loaded that an older one cannot even parse.
const [major = 0] = process.versions.node.split('.').map(Number)

if (major < 24) {
  process.exitCode = 1
  process.stderr.write(
    `Vitrine needs Node 24 or newer, this is ${process.version}. Start it with npm start: the right Node comes with ` +
      `npm ci (where install scripts were switched off, run: npm rebuild node).\n`,
  )
} else {
  const { serve } = await import('./serve.ts')
  await serve(process.env)
}

export {}
