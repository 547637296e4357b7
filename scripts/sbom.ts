// The software bill of materials (SBOM) of the bundle, in CycloneDX format. It is the output of `npm sbom` with only
// the packages whose code is in the bundle. npm itself lists too much (the development tools) or, without dev
// dependencies, too little (no packages of the console).
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

const Bom = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ 'bom-ref': z.string() }) }),
  components: z.array(z.looseObject({ 'bom-ref': z.string(), name: z.string(), version: z.string() })),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

/** If a package of the bundle is unknown to npm, throws an Error that names it. */
export async function sbomOf(packages: Iterable<string>): Promise<string> {
  const wanted = new Map<string, string>()
  for (const folder of packages) {
    const { name, version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    wanted.set(`${name}@${version}`, name)
  }
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--include=dev', '--loglevel=error']
  // Vite sets NODE_ENV to production. npm would then omit packages, also some of the bundle.
  const { stdout } = await promisify(execFile)('npm', args, {
    cwd: ROOT,
    env: { ...process.env, NODE_ENV: '' },
    maxBuffer: 64 << 20,
  })
  const bom = Bom.parse(JSON.parse(stdout))
  const components = bom.components.filter(({ name, version }) => wanted.delete(`${name}@${version}`))
  if (wanted.size > 0) throw new Error(`npm sbom does not list ${[...wanted.keys()].join(', ')}`)
  const root = bom.metadata.component['bom-ref']
  const refs = new Set([root, ...components.map((component) => component['bom-ref'])])
  const dependencies = bom.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }))
  return `${JSON.stringify({ ...bom, components, dependencies }, null, 1)}\n`
}
