// `npm start` runs this file. It checks the version of Node first, because an older version cannot parse the other
// files.
import { nodeProblem } from './node-version.ts'

const problem = nodeProblem(process.version)

if (problem !== null) {
  process.exitCode = 1
  process.stderr.write(
    `${problem} Start Vitrine with npm start: npm ci installs the right Node (if install scripts are off, run: npm ` +
      `rebuild node).\n`,
  )
} else {
  await import('./node-22-polyfills.ts')
  const { serve } = await import('./serve.ts')
  await serve(process.env, { demo: process.env['npm_lifecycle_event'] === 'start' })
}
