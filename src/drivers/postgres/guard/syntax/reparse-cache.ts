// The guard parses each printed text again and compares it with the confined tree. This file saves most of the parsing.
// The form of a text is the text without plain names, strings and numbers. PostgreSQL's grammar depends only on the
// kinds of tokens, so texts of one form have equal trees except for these tokens. A form is parsed once with marks in
// its gaps, which show the places of the tokens in the tree. For each text of the form, its tokens replace the marks,
// and the tree is compared node by node.
import type { Parse } from './parser.ts'
import { SeenTwice } from '../../../seen-twice-cache.ts'
import { isSameTree, PLACES, Slot } from './verify-printed.ts'

const FORMS_MAX = 128
/** Longer texts have so many tokens that their form hardly occurs again. */
const TEXT_MAX = 4_096

/**
 * Matches whole tokens, in this order: strings with escapes, and bit strings; names of pg_catalog, which may have
 * special syntax; a plain name; any other name; a plain string; any other string; a plain number. Only plain tokens are
 * captured. 0 and '' are not plain, because the parser omits them from its tree. A name of more than 62 characters is
 * not plain, because the parser may shorten it.
 */
const TOKENS =
  /[EBX]'(?:[^'\\]|''|\\[^])*'|"pg_catalog"\."(?:[^"]|"")*"|"pg_catalog"|"(\w{1,62})"(?!")|"(?:[^"]|"")*"|'([^'\\]+)'(?!')|'(?:[^']|'')*'|(?<![\w.$])([1-9]\d{0,8})(?![\w.])/g
const GAP = '\0'
/** After these keywords, the tree depends on the value of a name or string. */
const READS = /\b(?:ENCODING|XML\w*|UESCAPE)\b/

const MARK = 'vqmark'
const NUMBER_MARK = 900_000_000
const TOKENS_MAX = 10_000

interface Form {
  readonly key: string
  /** The values of the gaps, without quotes. */
  readonly tokens: readonly string[]
}

/** The tree of each form, with slots in place of the marks. Null if the form cannot be used. */
const forms = new SeenTwice<unknown>(FORMS_MAX)

/** Returns true if the text surely parses to the confined tree. Otherwise returns undefined, and it must be parsed. */
export function isKnownSame(parse: Parse, printed: string, confined: object): true | undefined {
  const form = formOf(printed)
  if (form === null) return undefined
  let tree = forms.get(form.key)
  if (tree === undefined && forms.see(form.key)) {
    tree = slotted(parse, form)
    forms.keep(form.key, tree)
  }
  return tree !== undefined && tree !== null && isSameTree(tree, confined, form.tokens) ? true : undefined
}

/** Returns null if the text is too long, or contains a keyword of READS or a NUL. */
export function formOf(printed: string): Form | null {
  if (printed.length > TEXT_MAX || READS.test(printed) || printed.includes(GAP)) return null
  const tokens: string[] = []
  const key = printed.replaceAll(TOKENS, (token, name?: string, string?: string, number?: string) => {
    const plain = name ?? string ?? number
    if (plain === undefined) return token
    tokens.push(plain)
    return name !== undefined ? '"\0"' : string !== undefined ? "'\0'" : GAP
  })
  return { key, tokens }
}

/**
 * Returns the tree of a form, with slots in place of the marks. Returns null if the form cannot be parsed, or if a mark
 * is not in the tree exactly once.
 */
function slotted(parse: Parse, { key, tokens }: Form): unknown {
  const parts = key.split(GAP)
  if (tokens.length > TOKENS_MAX || key.includes(MARK)) return null
  let text = parts[0] ?? ''
  for (const [n, part] of parts.slice(1).entries()) text += markAt(text, n) + part
  const parsed = parse(text)
  if (parsed.kind !== 'tree') return null
  const found = new Set<number>()
  let isOnce = true
  const tree = withSlots(parsed.tree, (slot) => {
    if (found.has(slot.index)) isOnce = false
    found.add(slot.index)
  })
  return isOnce && found.size === tokens.length ? tree : null
}

/** Returns a mark: a word inside quotes, otherwise a number. */
function markAt(before: string, n: number): string {
  return before.endsWith('"') || before.endsWith("'") ? `${MARK}${n}` : String(NUMBER_MARK + n)
}

/** Copies a parsed tree, without positions and with slots in place of marks. */
function withSlots(value: unknown, found: (slot: Slot) => void): unknown {
  if (Array.isArray(value)) return value.map((item) => withSlots(item, found))
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([key]) => !PLACES.has(key))
    return Object.fromEntries(entries.map(([key, item]) => [key, withSlots(item, found)]))
  }
  const slot = slotFor(value)
  if (slot === null) return value
  found(slot)
  return slot
}

function slotFor(value: unknown): Slot | null {
  if (typeof value === 'string' && value.startsWith(MARK))
    return new Slot(Number(value.slice(MARK.length)), false, false)
  if (typeof value !== 'number') return null
  const index = Math.abs(value) - NUMBER_MARK
  return index >= 0 && index < TOKENS_MAX ? new Slot(index, true, value < 0) : null
}
