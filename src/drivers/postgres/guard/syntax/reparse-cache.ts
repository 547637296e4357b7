// Avoids the second parse of a printed text whose form is known. The form is the text without its plain names, strings
// and numbers. PostgreSQL's grammar depends on the kind of a token only. It treats all plain names alike, and also all
// plain strings and all plain numbers. A form is parsed once, with a different mark in each gap. Its tree shows by the
// marks where the tokens of a text belong. With these tokens in place of the marks, the tree is compared with the
// confined tree, node for node, as if the text had been parsed.
import type { Parse } from './parser.ts'
import { SeenTwice } from '../../../seen-twice-cache.ts'
import { isSameTree, PLACES, Slot } from './verify-printed.ts'

const FORMS_MAX = 128
/** Longer texts have so many tokens that their form is unlikely to occur again. */
const TEXT_MAX = 4_096

/**
 * Whole tokens, in this order: strings with escapes and bit strings; names of pg_catalog, which may have special
 * syntax; a plain name; any other name; a plain string; any other string; a plain number. Only plain tokens are
 * captured. 0 and '' are not plain, because the parser leaves them out of its tree. Names of more than 62 characters
 * are not plain, because the parser may shorten them.
 */
const TOKENS =
  /[EBX]'(?:[^'\\]|''|\\[^])*'|"pg_catalog"\."(?:[^"]|"")*"|"pg_catalog"|"(\w{1,62})"(?!")|"(?:[^"]|"")*"|'([^'\\]+)'(?!')|'(?:[^']|'')*'|(?<![\w.$])([1-9]\d{0,8})(?![\w.])/g
const GAP = '\0'
/** Keywords whose syntax interprets the name or string after them, so the tree depends on its value. */
const READS = /\b(?:ENCODING|XML\w*|UESCAPE)\b/

const MARK = 'vqmark'
const NUMBER_MARK = 900_000_000
const TOKENS_MAX = 10_000

interface Form {
  readonly key: string
  /** The values in the gaps, without quotes. */
  readonly tokens: readonly string[]
}

/** For each form, its tree with slots in the gaps. Null if the form has no such tree. */
const forms = new SeenTwice<unknown>(FORMS_MAX)

/**
 * Returns true if the printed text would be parsed as the confined tree. Returns undefined if the form is unknown or
 * the trees differ. The caller must then parse the text.
 */
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

/** Returns the form of a text. Returns null if the text is too long, or contains a keyword of READS or a NUL. */
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
 * Parses a form with marks in its gaps, and returns the tree. Returns null if the form cannot be parsed in this way, or
 * if a mark does not appear in the tree exactly once.
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

/** Returns the mark for the n-th gap: a word if the gap is in quotes, otherwise a number. */
function markAt(before: string, n: number): string {
  return before.endsWith('"') || before.endsWith("'") ? `${MARK}${n}` : String(NUMBER_MARK + n)
}

/** Copies a parsed tree, with slots for the marks and without positions. */
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
