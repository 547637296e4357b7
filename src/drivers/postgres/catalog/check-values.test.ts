import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowedValues } from './check-values.ts'

const most = { values: 3, characters: 8 }

for (const [expression, want] of [
  [`(status = ANY (ARRAY['new'::text, 'paid'::text]))`, ['new', 'paid']],
  [`((status)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))`, ['a', 'b']],
  [`((status)::text = ANY (ARRAY[('a'::character varying)::text, ('b'::character varying)::text]))`, ['a', 'b']],
  [`("My Col" = ANY (ARRAY['m'::bpchar, 'f'::bpchar]))`, ['m', 'f']],
  [`(level = ANY (ARRAY[1, '-2'::text]))`, [1, '-2']],
  [`(level = ANY (ARRAY[-1, 2]))`, [-1, 2]],
  [`(s = ANY (ARRAY['it''s'::text, ', '::text, ']))'::text]))`, ["it's", ', ', ']))']],
  [`(s = ANY (ARRAY['a'::text, 'b'::text, 'c'::text, 'd'::text]))`, null],
  [`(s = ANY (ARRAY['a long label'::text]))`, null],
  [`(s <> ALL (ARRAY['a'::text]))`, null],
  [`((s IS NULL) OR (s = ANY (ARRAY['a'::text])))`, null],
  [`(lower(s) = ANY (ARRAY['a'::text]))`, null],
  [`(s = ANY (ARRAY[lower('a'::text)]))`, null],
  [`((s = ANY (ARRAY['a'::text])) OR (s = ANY (ARRAY['b'::text])))`, null],
  [`(n = ANY (ARRAY[(1)::numeric]))`, null],
] as const) {
  const title = want === null ? 'is not read as a list of values' : `allows ${JSON.stringify(want)}`
  test(`${expression} ${title}`, () => assert.deepEqual(allowedValues(expression, most), want))
}
