// What is turned away before the parser sees it, and what must not be.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { prescan } from './prescan.ts'

describe('comments', () => {
  const nested = (n: number): string => `SELECT 1 ${'/*'.repeat(n)}${'*/'.repeat(n)}`
  test('nest eight deep', () => {
    assert.equal(prescan(nested(8)).kind, 'fine')
    assert.equal(prescan(nested(9)).kind, 'comments')
    assert.equal(prescan(`SELECT 1 ${'/*'.repeat(9)}`).kind, 'comments')
  })
  test('begin only where the scanner says so', () => {
    const many = '/*'.repeat(20)
    for (const text of [
      `SELECT '${many}'`,
      `SELECT "${many}"`,
      `SELECT $$${many}$$`,
      `SELECT $a$${many}$$${many}$a$`,
      String.raw`SELECT E'\'` + `${many}'`,
      `SELECT 'it''s ${many}'`,
      `SELECT 1 -- ${many}\n`,
    ]) {
      assert.equal(prescan(text).kind, 'fine', text)
    }
    for (const text of [
      `SELECT 'a\\' ${many}'`,
      `SELECT 1 -- \n${many}`,
      `SELECT 1 -${many}`,
      `SELECT xe''${many}`,
      `SELECT a$b${many}`,
    ]) {
      assert.equal(prescan(text).kind, 'comments', text)
    }
  })
})

describe('depth', () => {
  const depthOf = (text: string): number => {
    const scanned = prescan(text)
    return scanned.kind === 'fine' ? scanned.depth : Number.POSITIVE_INFINITY
  }
  test('of a flat list is small, however long', () => {
    const flat = [
      `SELECT 1 IN (${'1, '.repeat(10_000)}1)`,
      `VALUES ${"(1, 'a'), ".repeat(4_000)}(1, 'b')`,
      `SELECT 1 WHERE ${'a = 1 AND '.repeat(4_000)}b = 2`,
      `SELECT 1 WHERE ${'(a = 1 OR b < 2) AND '.repeat(2_000)}b = 2`,
      `SELECT ${'a + 1, '.repeat(4_000)}1`,
      `SELECT ${'CASE WHEN a = 1 THEN 2 END, '.repeat(2_000)}1`,
    ]
    for (const text of flat) assert.ok(depthOf(text) < 10, text.slice(0, 40))
  })
  test('of a chain is its length', () => {
    const chains = [
      `SELECT 1${' + 1'.repeat(500)}`,
      `SELECT ${'- '.repeat(500)}1`,
      `SELECT ${'('.repeat(500)}1${')'.repeat(500)}`,
      `SELECT a${'::text'.repeat(500)}`,
      `SELECT ${'NOT '.repeat(500)}a`,
      `SELECT ${'CASE WHEN a THEN '.repeat(500)}1${' END'.repeat(500)}`,
      `SELECT 1, 2${' UNION SELECT 1, 2'.repeat(500)}`,
      `SELECT 1 FROM a${' JOIN b USING (x, y)'.repeat(500)}`,
    ]
    for (const text of chains) assert.ok(depthOf(text) >= 500 && depthOf(text) < 1_600, text.slice(0, 40))
  })
  test('over 3,000 is turned away', () => {
    assert.equal(prescan(`SELECT ${'('.repeat(3_001)}`).kind, 'deep')
    assert.equal(prescan(`SELECT 1${'+1'.repeat(3_001)}`).kind, 'deep')
  })
})
