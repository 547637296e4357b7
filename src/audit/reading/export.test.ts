import assert from 'node:assert/strict'
import { test } from 'node:test'
import { piecesOf } from './export.ts'
import type { AuditItem } from './page.ts'

test('a line of JSON with a long text is written in short pieces', () => {
  const about = {
    id: 'x',
    at: 'y',
    actor: { accountId: null },
    via: 'API_KEY',
    action: 'runQuery',
    outcome: 'ANSWERED',
  } as const
  for (const query of ['', 'short', '"\u0001é😀'.repeat(100_000), 'x' + '😀'.repeat(100_000), 'x'.repeat(1 << 16)]) {
    const item: AuditItem = { ...about, query, printed: 'p', times: 2 }
    const pieces = [...piecesOf('jsonl', item)]
    assert.equal(pieces.join(''), `${JSON.stringify(item)}\n`)
    assert.ok(pieces.every((piece) => piece.length <= 6 << 15))
  }
})
