// The bounds of regular expressions must hold for a matcher that backtracks, and a pattern with unknown syntax must be
// refused. Without SEED, each run tests other random patterns.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constant } from './amount.ts'
import { boundOf, matchSteps, triesOf, weightOf } from './pattern-steps.ts'
import { parsePattern, type Chars, type ParsedPattern, type Pattern } from '../body/pattern-tree.ts'
import { Broken, Refusal } from '../refusals/refusal.ts'

const triesIn = (pattern: string): readonly number[] | null => triesOf(parsePattern(pattern).tree)
const degreeOf = (pattern: string): number | null => {
  const tries = triesIn(pattern)
  return tries && tries.length - 1
}

test('the bound of a pattern counts in how many ways repetitions can divide a text', () => {
  const DEGREES: Readonly<Record<string, number | null>> = {
    abc: 0,
    'colou?r': 0,
    'a{3}b{2,4}c': 0,
    '\\d{4}-\\d{2}': 0,
    '[^,]+;': 1,
    '\\w+@': 1,
    '\\w+@\\w+\\.\\w+$': 1,
    '(?:www\\.)?[a-z]+\\.com': 1,
    '(?:\\w+\\s)*x': 1,
    '(?:[a-z0-9]+-)*[a-z0-9]+$': 2,
    '(?:foo|bar)+x': 1,
    '(?:ab|ac)*x': 1,
    '(?:foo|far|fo.z)+x': null,
    '(?:foo|far|[a-e]o)+x': 1,
    '(?:(?:ab|ac)d*)+x': 1,
    '(?:ab|abc)*x': null,
    '(?:ab|a[bc])*x': null,
    'x.*y': 1,
    '.*foo.*': 1,
    'x.*y.*z': 2,
    'x*x*x*[yz]': 3,
    '(\\w+) \\1': 1,
    '(?=.*\\d)(?=.*[A-Z]).{8,}': 1,
    'a*b*c*d*$': 1,
    '(a+)+b': null,
    '(?:a|ab)*c': null,
    '(\\w+\\s?)*$': null,
    '(a*)*b': null,
    '(?:\\1a)*x': null,
    'x*x*x*x*x*y': null,
    '(?:(?:a+)+z)*': null,
    '^(?:\\n|\\v)+z': null,
    '(?:[^a]*A)+z(?i:b)': null,
    '(?:ab*){2}c': 1,
    '(?:ab*){2}b*c': 2,
    [`${'(?:ab*){2}b*'.repeat(6)}c`]: null,
    '(?:[0-9]{1,3}\\.){3}x': 0,
    '(\\w)\\1': 0,
  }
  for (const [pattern, degree] of Object.entries(DEGREES)) assert.equal(degreeOf(pattern), degree, pattern)
  assert.ok((triesIn('(?:x? ?y? ?)?(?:x? ?y? ?)?(?:x? ?y? ?)?(?:x? ?y? ?)?(?:x? ?y? ?)?[qr]')?.[0] ?? 0) > 30_000)
  assert.ok((triesIn('https?://(?:www\\.)?(?:a|b|c)')?.[0] ?? 999) < 120)
})

test('unknown syntax of patterns, and texts that are no pattern, are refused', () => {
  for (const pattern of [
    '(?R)',
    '(?1)',
    '(?(1)a)',
    '(*UTF)a',
    '\\Ka',
    '\\Ra',
    '\\Xa',
    '\\Qa\\E',
    '(?#a)',
    "(?'n'a)",
    '\\g1',
    '\\k<n>',
    'a{,3}',
    '(?:.?){0,1000}',
    '(?:(?:ab){20}c){40}',
    'a{000001,}',
    '\\x{000006a}',
    '\\xg',
    '[[:>:]]',
    '[[.a.]]',
    '(?x)a',
    '(?-i)a',
    '[[:cntrl:]]',
    '\\12',
    '^*',
    'a'.repeat(513),
  ])
    assert.throws(() => parsePattern(pattern), Refusal, pattern)
  for (const pattern of ['(a', 'a)', '[a', '*a', 'a|+', 'a{3,2}', 'a\\', '[b-a]', '[a-\\d]'])
    assert.throws(() => parsePattern(pattern), Broken, pattern)
  for (const pattern of [
    '',
    '|',
    '()',
    'a{',
    'a{x}',
    '[]a]',
    '[^]a]',
    '[a-]',
    '[\\]a]',
    '[[:alpha:]_]',
    '\\x{1F600}é😀',
    '(?i)a',
    '(?i:a)',
    '(?<n>a)(?P<m>b)',
    '(?>a)b',
    'a++b*?c??',
    '\\bfoo\\B',
    '\\p{Lu}\\pL',
    '[\\w.-]',
  ])
    assert.doesNotThrow(() => parsePattern(pattern), pattern)
  assert.throws(() => parsePattern('[\\x{100}-\\x{10fffe}]', 'i'), Refusal)
  assert.doesNotThrow(() => parsePattern('[\\x{100}-\\x{10fffe}]'))
  assert.doesNotThrow(() => parsePattern('[À-ÿ]', 'i'))
})

test('with the option x, spaces and comments in a pattern are no characters', () => {
  assert.equal(triesOf(parsePattern('( a + ) + b', 'x').tree), null)
  assert.equal(triesOf(parsePattern('( a + ) + b').tree)?.length, 3)
  assert.equal(triesOf(parsePattern('(a+) # (\n+b', 'x').tree), null)
})

test('each part of a pattern counts, wherever it stands', () => {
  const bytes = constant(1_000)
  const text = { bytes, longest: bytes, run: bytes, starts: constant(1) }
  const steps = (pattern: string, options = ''): number => {
    const parsed = parsePattern(pattern, options)
    return triesOf(parsed.tree) === null ? Infinity : matchSteps(parsed, text).constant
  }
  // The tries for a part that is entered at each position, after a repetition, and in each turn of a group.
  for (const part of ['\\B', '^', '$', '(?=)', '(?!x)', '()', '(?:)', '(?:|)', '\\1', 'a{0}', 'b?', '(?>b*)'])
    for (const [before, after, atLeast] of [
      ['(y)', 'z', 1_000 / 20],
      ['(y)[a-x]*', 'z', 1_000 ** 2 / 50],
      ['(y)(?:a', ')*z', 1_000 / 40],
    ] as const) {
      const added = steps(before + part.repeat(9) + after) - steps(before + after)
      assert.ok(!(added < 9 * atLeast), `${before}${part}${after}: ${added}`)
    }
  const letters = [...'абвгдежзийклмнопрстуфхцчшщъыьэюя']
  assert.ok(steps(`[${letters.join('')}]{9}z`) > 2 * steps('[а-я]{9}z'), 'each letter is compared')
  assert.ok(steps('[а-я]{9}z', 'i') > 2 * steps('[а-я]{9}z'), 'the other case of each letter is compared')
  assert.ok(steps(`${'()'.repeat(100)}.*z`) > 3 * steps(`${'(?:)'.repeat(100)}.*z`), 'groups are copied')
})

/** Counts the tries of a backtracking matcher that searches a text. `isFound` is false if no match succeeds. */
function triesTaken(pattern: ParsedPattern, text: string, isFound: boolean, most: number): number {
  let count = 0
  let calls = 0
  const groups = new Map<number, string>()
  const fits = (chars: Chars, char: string): boolean =>
    ((chars >> BigInt(Math.min(128, char.charCodeAt(0)))) & 1n) === 1n
  const at = (part: Pattern, place: number, go: (place: number) => boolean): boolean => {
    if (count > most || ++calls > CALLS_MAX) return true
    count += weightOf(part)
    switch (part.kind) {
      case 'char':
        return place < text.length && fits(part.first, text.charAt(place)) && go(place + 1)
      case 'position':
        return go(place)
      case 'back reference': {
        const known = groups.get(part.index)
        if (known === undefined) return false
        count += 2 * known.length
        return text.startsWith(known, place) && go(place + known.length)
      }
      case 'lookaround':
        // Whatever the matcher finds, it goes on.
        return at(part.of, place, () => false) || go(place)
      case 'group':
        return at(part.of, place, (there) => {
          if (part.index === null) return go(there)
          const before = groups.get(part.index)
          groups.set(part.index, text.slice(place, there))
          if (go(there)) return true
          if (before === undefined) groups.delete(part.index)
          else groups.set(part.index, before)
          return false
        })
      case 'sequence': {
        const from = (n: number, here: number): boolean => {
          const next = part.of[n]
          return next === undefined ? go(here) : at(next, here, (there) => from(n + 1, there))
        }
        return from(0, place)
      }
      case 'alternatives':
        return part.of.some((each) => at(each, place, go))
      case 'repeat': {
        const turn = (n: number, here: number): boolean =>
          (n < part.most && at(part.of, here, (there) => (there > here || n < part.least) && turn(n + 1, there))) ||
          (n >= part.least && go(here))
        return turn(0, place)
      }
    }
  }
  // With isOnce, all attempts together cost as much as one attempt at the beginning of the text.
  const lastStart = boundOf(pattern).isOnce ? 0 : text.length
  for (let start = 0; start <= lastStart; start++) if (at(pattern.tree, start, () => isFound)) break
  return calls > CALLS_MAX ? 0 : count
}

const CALLS_MAX = 300_000

interface Made {
  readonly pattern: string
  /** Returns a text that the pattern matches, or nearly matches. */
  readonly text: () => string
}

/** Writes random patterns, with texts that match them or nearly match them. */
class Writer {
  #state: number
  #groups = 0

  constructor(seed: number) {
    this.#state = (seed % 2_147_483_646) + 1
  }

  below(n: number): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647
    return this.#state % n
  }

  pick<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)]
    assert.ok(found !== undefined)
    return found
  }

  query(): { readonly pattern: string; readonly texts: readonly string[] } {
    this.#groups = 0
    const unit = this.#sequence(2)
    const copies = 1 + this.below(5)
    const twice = (): string => unit.text() + unit.text()
    const texts = [
      Array.from({ length: copies + 2 }, twice).join(''),
      twice().repeat(copies + 2),
      Array.from(unit.text().slice(0, 20), (char) => char.repeat(1 + this.below(8))).join(''),
    ]
    return {
      pattern: this.pick(['', '', '^', '^', '.*', 'ab']) + unit.pattern.repeat(copies),
      texts: texts.map((text) => text.slice(0, this.pick([10, 30, 90]))),
    }
  }

  #sequence(depth: number): Made {
    const parts = Array.from({ length: this.below(12) === 0 ? 0 : 1 + this.below(3) }, () => this.#part(depth))
    return {
      pattern: parts.map(({ pattern }) => pattern).join(''),
      text: () => parts.map(({ text }) => text()).join(''),
    }
  }

  #part(depth: number): Made {
    const kind = this.below(100)
    if (depth > 0 && kind < 45) return this.#repeated(this.#group(depth - 1), TURNS)
    if (depth > 0 && kind < 50) {
      const { pattern } = this.#sequence(depth - 1)
      return { pattern: `${this.pick(['(?=', '(?!', '(?<='])}${pattern})`, text: () => '' }
    }
    if (kind < 58) return { pattern: this.pick(['\\b', '\\B', '$', '^']), text: () => '' }
    if (kind < 62 && this.#groups > 0) {
      const pattern = `\\${1 + this.below(Math.min(9, this.#groups))}`
      return this.#repeated({ pattern, text: () => this.pick(['a', 'ab', 'b']) }, TIMES)
    }
    const [pattern, chars] = this.pick(CLASSES)
    return this.#repeated({ pattern, text: () => this.pick([...chars]) }, TIMES)
  }

  #group(depth: number): Made {
    const open = this.pick(['(?:', '(?:', '(', '(?>'])
    if (open === '(') this.#groups++
    const all = Array.from({ length: this.pick([1, 1, 1, 2, 3]) }, () => this.#sequence(depth))
    return {
      pattern: `${open}${all.map(({ pattern }) => pattern).join('|')})`,
      text: () => this.pick(all).text(),
    }
  }

  #repeated({ pattern, text }: Made, quantifiers: readonly Quantifier[]): Made {
    const [quantifier, least, most] = this.pick(quantifiers)
    return {
      pattern: pattern + quantifier,
      text: () => Array.from({ length: least + this.below(most - least + 1) }, text).join(''),
    }
  }
}

/** A quantifier, and the least and most turns to write into a text. */
type Quantifier = readonly [quantifier: string, least: number, most: number]

const ONCE: Quantifier = ['', 1, 1]
const TIMES: readonly Quantifier[] = [
  ...([ONCE, ONCE, ['*', 0, 6], ['*', 0, 6], ['+', 1, 6], ['?', 0, 1], ['*?', 0, 6]] as const),
  ...([
    ['{2}', 2, 2],
    ['{3,}', 3, 7],
    ['{0,20}', 0, 8],
    ['{1,3}', 1, 3],
  ] as const),
]
const TURNS: readonly Quantifier[] = [
  ...([ONCE, ['*', 0, 4], ['+', 1, 4], ['?', 0, 1], ['{2}', 2, 2], ['{2}', 2, 2], ['{9}', 9, 9]] as const),
  ...([
    ['{0,20}', 0, 5],
    ['{2,9}', 2, 5],
    ['{1,3}', 1, 3],
    ['{2,}', 2, 4],
    ['{5,8}', 5, 6],
  ] as const),
]
const CLASSES: readonly (readonly [pattern: string, chars: string])[] = [
  ...([
    ['a', 'a'],
    ['b', 'b'],
    ['c', 'c'],
    ['a', 'a'],
    ['b', 'b'],
    ['c', 'c'],
    ['[ab]', 'ab'],
    ['[bc]', 'bc'],
  ] as const),
  ...([
    ['[^a]', 'bc'],
    ['.', 'ab'],
    ['[bäöü]', 'bä'],
    ['\\p{L}', 'a'],
  ] as const),
]

const SEED = Number(process.env['SEED'] ?? process.env['RUN_SEED'] ?? 14)
const TRY = 1 / 20

test(`for random patterns, no text takes more tries than the bound (SEED=${SEED})`, () => {
  const writer = new Writer(SEED)
  let [bounded, heavy, compared] = [0, 0, 0]
  for (let n = 0; n < 5_000; n++) {
    const { pattern: written, texts } = writer.query()
    for (const isFound of [false, true]) {
      const parsed = parsedOrNull(isFound ? written : `${written}!`)
      if (parsed === null) continue
      if (triesOf(parsed.tree) === null) {
        heavy++
        continue
      }
      bounded++
      for (const text of texts) {
        const bytes = constant(text.length + 1)
        const steps = matchSteps(parsed, { bytes, longest: bytes, run: bytes, starts: constant(1) }).constant
        if (steps > 20_000) continue
        compared++
        const count = triesTaken(parsed, text, isFound, 4 * (steps / TRY))
        assert.ok(count * TRY <= steps, `${written} on ${text}, ${isFound}: ${count} tries, more than ${steps} steps`)
      }
    }
  }
  assert.ok(bounded > 2_000 && heavy > 200 && compared > 5_000, `${bounded} bounded, ${heavy} heavy, ${compared} texts`)
})

/** Returns null for a pattern that is too large. */
function parsedOrNull(pattern: string): ParsedPattern | null {
  try {
    return parsePattern(pattern)
  } catch (error) {
    assert.ok(error instanceof Refusal, pattern)
    return null
  }
}
