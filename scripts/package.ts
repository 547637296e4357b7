// `npm run -s package [FOLDER]` creates the folder that is published to npm, by default dist-package/. It contains the
// bundle, the demo's data, the licenses, the software bill of materials, and a manifest. All code is in the bundle, so
// the manifest has no dependencies and no scripts.
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NODE_BUNDLE_MIN } from '../src/node-version.ts'
import { bundleInto } from './bundle.ts'
import { sbomOf } from './sbom.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

const { name, version, description, license } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))

const MANIFEST = {
  name,
  version,
  description,
  license,
  type: 'module',
  engines: { node: `>=${NODE_BUNDLE_MIN}` },
  bin: { [name]: 'dist/cli.js' },
  files: ['dist', 'demo', 'sbom.cdx.json'],
}

const folder = resolve(process.argv[2] ?? join(ROOT, 'dist-package'))
await rm(folder, { recursive: true, force: true })
await mkdir(join(folder, 'dist'), { recursive: true })
const { packages, unread } = await bundleInto(join(folder, 'dist'))
if (unread.length > 0)
  throw new Error(`Read these licenses, then list them in scripts/licenses.ts: ${unread.join(', ')}`)
await writeFile(join(folder, 'sbom.cdx.json'), await sbomOf(packages))
await cp(join(ROOT, 'demo/seed.sql'), join(folder, 'demo/seed.sql'))
await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
await cp(join(ROOT, 'deploy/npm/README.md'), join(folder, 'README.md'))
await writeFile(join(folder, 'package.json'), `${JSON.stringify(MANIFEST, null, 2)}\n`)
process.stdout.write(`${folder}\n`)
