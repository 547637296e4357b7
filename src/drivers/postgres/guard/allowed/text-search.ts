// Checks text search configurations and dictionaries in calls. The server would look up a name, and its answer would
// reveal whether a hidden object exists. The guard therefore prints only names of configurations and dictionaries that
// come with PostgreSQL or a known extension.
import type { CapturedExtension } from '../../captured-facts.ts'
import { identifier } from '../../quote.ts'
import { didYouMean, nearest } from '../../../nearest.ts'
import { words, type Node } from './allowed-nodes.ts'
import { Refusal } from '../refusal.ts'

/** Overloads whose first argument is a configuration, by name and number of arguments. */
const TAKES_CONFIGURATION: ReadonlySet<string> = new Set([
  ...['to_tsvector/2', 'to_tsquery/2', 'plainto_tsquery/2', 'phraseto_tsquery/2', 'websearch_to_tsquery/2'],
  ...['json_to_tsvector/3', 'jsonb_to_tsvector/3', 'ts_headline/4'],
])

/** The overload that takes either (configuration, document, query) or (document, query, options). */
const HEADLINE = 'ts_headline/3'

/**
 * Configurations of pg_catalog in PostgreSQL 14 to 18. A server refuses a configuration that its version does not have.
 */
const CONFIGURATIONS: readonly string[] = [
  ...['simple', 'arabic', 'armenian', 'basque', 'catalan', 'danish', 'dutch', 'english', 'estonian', 'finnish'],
  ...['french', 'german', 'greek', 'hindi', 'hungarian', 'indonesian', 'irish', 'italian', 'lithuanian', 'nepali'],
  ...['norwegian', 'portuguese', 'romanian', 'russian', 'serbian', 'spanish', 'swedish', 'tamil', 'turkish', 'yiddish'],
]
const OWN: ReadonlySet<string> = new Set(CONFIGURATIONS)

/**
 * Returns the arguments of a function of pg_catalog, with its configuration printed as pg_catalog.english. Throws
 * Refusal.
 */
export function withConfiguration(name: string, args: readonly Node[], at: number | undefined): readonly Node[] {
  const overload = `${name}/${args.length}`
  const [first, ...rest] = args
  if (!first) return args
  if (overload === HEADLINE) return headline(name, first, rest, at)
  if (!TAKES_CONFIGURATION.has(overload)) return args
  return [configuration(name, first, at), ...rest]
}

/**
 * Confines the arguments of HEADLINE. The third argument decides whether an untyped first argument is a configuration
 * or the document.
 */
function headline(name: string, first: Node, rest: readonly Node[], at: number | undefined): readonly Node[] {
  const plain = uncollated(first)
  const isNamed = [first, ...rest].some((arg) => arg.NamedArgExpr !== undefined)
  // A bare parameter has already been cast to text. Under COLLATE it has not, so the server would choose its type.
  const isUntyped = plain.A_Const?.sval !== undefined || ('ParamRef' in plain && plain !== first)
  const mayBeConfiguration = isNamed || isUntyped || isCastTo(plain, 'regconfig')
  if (!mayBeConfiguration) return [first, ...rest]
  if (rest[1]?.A_Const === undefined) return [configuration(name, first, at), ...rest]
  // The third argument is text, so the first argument is the document.
  return [{ TypeCast: { arg: first, typeName: { names: [{ String: { sval: 'text' } }], typemod: -1 } } }, ...rest]
}

/** Removes COLLATE, because a literal under COLLATE still has no type. */
function uncollated(node: Node): Node {
  let plain = node
  while (plain.CollateClause?.arg) plain = plain.CollateClause.arg
  return plain
}

function isCastTo(node: Node, type: string): boolean {
  return words(node.TypeCast?.typeName?.names).at(-1) === type
}

function configuration(name: string, node: Node, at: number | undefined): Node {
  const value = (isCastTo(node, 'regconfig') ? node.TypeCast?.arg : node)?.A_Const
  const text = value?.sval?.sval
  const place = value?.location ?? at
  if (text === undefined) {
    const why = `the text search configuration of ${name}() is not a constant`
    throw new Refusal('function', name, why, `Write the configuration as a constant. ${CHOICE}`, place)
  }
  const written = nameOf(text)
  if (!OWN.has(written)) {
    const why = `text search configuration ${text} does not exist or may not be named`
    const near = didYouMean(nearest(written, CONFIGURATIONS).map((each) => `'${each}'`))
    throw new Refusal('function', name, why, near === '' ? CHOICE : `${near} ${CHOICE}`, place)
  }
  return constant(`pg_catalog.${written}`, value?.location)
}

const CHOICE = "Use one of PostgreSQL's own configurations, for example 'simple' or 'english'."

/** Returns the name without its schema, in lower case unless quoted. Any other text is returned unchanged. */
function nameOf(text: string): string {
  const found = /^\s*(?:pg_catalog\s*\.\s*)?(?:([A-Za-z_]+)|"([a-z_]+)")\s*$/.exec(text)
  return found?.[1]?.toLowerCase() ?? found?.[2] ?? text
}

/**
 * Confines unaccent(dictionary, text): only the extension's own dictionary is allowed, with the extension's schema.
 * Throws Refusal.
 */
export function withDictionary(
  extension: CapturedExtension | undefined,
  name: string,
  args: readonly Node[],
  at: number | undefined,
): readonly Node[] {
  const [first, ...rest] = args
  if (!extension || name !== 'unaccent' || !first || rest.length !== 1) return args
  const value = (isCastTo(first, 'regdictionary') ? first.TypeCast?.arg : first)?.A_Const
  const own = [name, `${extension.schema}.${name}`, `${identifier(extension.schema)}.${name}`]
  const text = value?.sval?.sval
  if (text === undefined || !own.includes(text)) {
    const why = `the text search dictionary of ${name}() does not exist or may not be named`
    throw new Refusal('function', name, why, `Leave the dictionary out: ${name}(text).`, value?.location ?? at)
  }
  return [constant(`${identifier(extension.schema)}.${identifier(name)}`, value?.location), ...rest]
}

function constant(sval: string, location: number | undefined): Node {
  return { A_Const: { sval: { sval }, ...(location !== undefined && { location }) } }
}
