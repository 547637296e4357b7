import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Parser } from './syntax/parser.ts'
import { openParser } from './parser-pool.ts'
import { warmUp } from './warm-up.ts'

let parser: Parser & AsyncDisposable
before(async () => {
  parser = await openParser()
})
after(() => parser[Symbol.asyncDispose]())

/** Returns a parser that counts the texts and the turns of the event loop between them. */
function counted(): { readonly parser: Parser; readonly parsed: number; readonly turns: number } & Disposable {
  const count = { parsed: 0, turns: 0 }
  let ended = false
  const turn = (): void => {
    count.turns++
    if (!ended) setImmediate(turn)
  }
  setImmediate(turn)
  return Object.assign(count, {
    parser: { ...parser, parse: (text: string) => (count.parsed++, parser.parse(text)) },
    [Symbol.dispose]: () => {
      ended = true
    },
  })
}

test('the warm-up gives the event loop a turn between two sample queries', async () => {
  using count = counted()
  await warmUp(count.parser, new AbortController().signal)
  assert.ok(count.parsed > 0)
  // Each query is parsed twice: the caller's text, and the printed text.
  assert.ok(count.turns >= count.parsed / 2, `${count.turns} turns, ${count.parsed} texts`)
})

test('the warm-up confines no query if the signal has aborted', async () => {
  using count = counted()
  await warmUp(count.parser, AbortSignal.abort())
  assert.equal(count.parsed, 0)
})
