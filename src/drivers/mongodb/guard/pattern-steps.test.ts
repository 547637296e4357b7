// Tests that the bounds of regular expressions hold for a matcher that backtracks, and that a pattern with unknown
// syntax is refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { triesOf } from './pattern-steps.ts'
import { parsePattern, type Chars, type Pattern } from './pattern-tree.ts'
import { Broken, Refusal } from './refusal.ts'

const triesIn = (pattern: string): readonly number[] | null => triesOf(parsePattern(pattern).tree)
const degreeOf = (pattern: string): number | null => {
  const tries = triesIn(pattern)
  return tries && tries.length - 1
}

test('counts in how many ways repetitions can divide a text', () => {
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
  }
  for (const [pattern, degree] of Object.entries(DEGREES)) assert.equal(degreeOf(pattern), degree, pattern)
  assert.ok((triesIn('(?:x? ?y? ?)?(?:x? ?y? ?)?(?:x? ?y? ?)?(?:x? ?y? ?)?(?:x? ?y? ?)?[qr]')?.[0] ?? 0) > 30_000)
  assert.ok((triesIn('https?://(?:www\\.)?(?:a|b|c)')?.[0] ?? 99) < 40)
})

test('refuses unknown syntax, and texts that are no pattern', () => {
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

test('with the option x, spaces and comments are no characters', () => {
  assert.equal(triesOf(parsePattern('( a + ) + b', 'x').tree), null)
  assert.equal(triesOf(parsePattern('( a + ) + b').tree)?.length, 3)
  assert.equal(triesOf(parsePattern('(a+) # (\n+b', 'x').tree), null)
})

/**
 * Counts the characters that a backtracking matcher compares until it has found that a text does not match from its
 * start.
 */
function compared(tree: Pattern, text: string, most: number): number {
  let count = 0
  const fits = (chars: Chars, char: string): boolean => ((chars >> BigInt(char.charCodeAt(0))) & 1n) === 1n
  const at = (part: Pattern, place: number, go: (place: number) => boolean): boolean => {
    if (count > most) return true
    switch (part.kind) {
      case 'char':
        count++
        return place < text.length && fits(part.first, text.charAt(place)) && go(place + 1)
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
      default:
        return go(place)
    }
  }
  // The match never succeeds at its end, so that every way is tried.
  at(tree, 0, () => false)
  return count
}

test('no text takes more tries than the bound, for random patterns', () => {
  let seed = 20_261_122
  const next = (n: number): number => (seed = (seed * 48_271) % 2_147_483_647) % n
  const pick = (list: readonly string[]): string => list[next(list.length)] ?? ''
  const atom = (depth: number): string =>
    depth > 0 && next(3) === 0
      ? `(${Array.from({ length: 1 + next(2) }, () => sequence(depth - 1)).join('|')})`
      : pick(['a', 'b', 'c', '[ab]', '[bc]', '.', '[^a]'])
  const sequence = (depth: number): string =>
    Array.from(
      { length: 1 + next(3) },
      () => atom(depth) + pick(['', '', '', '?', '*', '+', '{2}', '{1,2}', '{0,5}', '{2,}']),
    ).join('')
  let [bounded, heavy] = [0, 0]
  for (let n = 0; n < 4_000; n++) {
    const pattern = sequence(2)
    const { tree } = parsePattern(`${pattern}!`)
    const tries = triesOf(tree)
    if (tries === null) {
      heavy++
      continue
    }
    bounded++
    for (const text of ['a'.repeat(14), 'ab'.repeat(7), 'abc'.repeat(5), 'aabbcc'.repeat(2), 'b'.repeat(9)]) {
      const bound = tries.reduce((all, times, degree) => all + times * (text.length + 1) ** degree, 0)
      // Each try takes at most one comparison for each character of the pattern.
      const count = compared(tree, text, 1e6)
      assert.ok(count <= 2 * bound * pattern.length, `${pattern} on ${text}: ${count} > ${bound} (${tries.join(' ')})`)
    }
  }
  assert.ok(bounded > 2_000 && heavy > 200, `${bounded} bounded, ${heavy} heavy`)
})
