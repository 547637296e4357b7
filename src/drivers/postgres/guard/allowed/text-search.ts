// Checks the names of text search configurations and dictionaries. The server would look up any name, and its answer
// would reveal whether a hidden object exists. So only those of PostgreSQL itself and of known extensions are printed.
import type { CapturedExtension } from '../../captured-facts.ts'
import { identifier } from '../../quote.ts'
import { didYouMean, nearest } from '../../../nearest.ts'
import { words, type Node } from './allowed-nodes.ts'
import { Refusal } from '../refusal.ts'

/** Overloads whose first argument is a configuration, as name/arity. */
const TAKES_CONFIGURATION: ReadonlySet<string> = new Set([
  ...['to_tsvector/2', 'to_tsquery/2', 'plainto_tsquery/2', 'phraseto_tsquery/2', 'websearch_to_tsquery/2'],
  ...['json_to_tsvector/3', 'jsonb_to_tsvector/3', 'ts_headline/4'],
])

/** Takes (configuration, document, query) or (document, query, options). */
const HEADLINE = 'ts_headline/3'

/** The configurations of PostgreSQL 14 to 18. An older server refuses those that it does not have. */
const CONFIGURATIONS: readonly string[] = [
  ...['simple', 'arabic', 'armenian', 'basque', 'catalan', 'danish', 'dutch', 'english', 'estonian', 'finnish'],
  ...['french', 'german', 'greek', 'hindi', 'hungarian', 'indonesian', 'irish', 'italian', 'lithuanian', 'nepali'],
  ...['norwegian', 'portuguese', 'romanian', 'russian', 'serbian', 'spanish', 'swedish', 'tamil', 'turkish', 'yiddish'],
]
const OWN: ReadonlySet<string> = new Set(CONFIGURATIONS)

/** Returns the arguments of a pg_catalog function. Configurations get their schema (pg_catalog). Throws Refusal. */
export function withConfiguration(name: string, args: readonly Node[], at: number | undefined): readonly Node[] {
  const overload = `${name}/${args.length}`
  const [first, ...rest] = args
  if (!first) return args
  if (overload === HEADLINE) return headline(name, first, rest, at)
  if (!TAKES_CONFIGURATION.has(overload)) return args
  return [configuration(name, first, at), ...rest]
}

/** Returns the arguments of HEADLINE. If the first has no type, the third shows what the first is. */
function headline(name: string, first: Node, rest: readonly Node[], at: number | undefined): readonly Node[] {
  const plain = uncollated(first)
  const isNamed = [first, ...rest].some((arg) => arg.NamedArgExpr !== undefined)
  // A plain parameter was cast to text before. One with COLLATE was not, so the server would choose its type.
  const isUntyped = plain.A_Const?.sval !== undefined || ('ParamRef' in plain && plain !== first)
  const mayBeConfiguration = isNamed || isUntyped || isCastTo(plain, 'regconfig')
  if (!mayBeConfiguration) return [first, ...rest]
  if (rest[1]?.A_Const === undefined) return [configuration(name, first, at), ...rest]
  // A constant as third argument means the options, so the first argument is the document.
  return [{ TypeCast: { arg: first, typeName: { names: [{ String: { sval: 'text' } }], typemod: -1 } } }, ...rest]
}

/** Removes COLLATE. A literal with COLLATE still has no type. */
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

/** Returns the name without pg_catalog, and in lower case unless it is quoted. Returns any other text unchanged. */
function nameOf(text: string): string {
  const found = /^\s*(?:pg_catalog\s*\.\s*)?(?:([A-Za-z_]+)|"([a-z_]+)")\s*$/.exec(text)
  return found?.[1]?.toLowerCase() ?? found?.[2] ?? text
}

/** Checks unaccent(dictionary, text). The dictionary must be the extension's, and gets its schema. Throws Refusal. */
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
