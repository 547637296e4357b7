// Reads the values that the CHECK of a column allows, if it is a list of constants. The input is from pg_get_expr.

const NAME = String.raw`(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)`
/** Matches `name = ANY (ARRAY[…])`, with the casts that PostgreSQL adds for varchar. */
const LIST = new RegExp(
  String.raw`^\((?:${NAME}|\(${NAME}\)::text) = ANY \((?:ARRAY\[(.+)\]|\(ARRAY\[(.+)\]\)::text\[\])\)\)$`,
  's',
)
const TEXT = String.raw`'((?:[^']|'')*)'::(?:text|character varying|bpchar)`
const ITEM = new RegExp(String.raw`(?:\(${TEXT}\)::text|${TEXT}|(-?\d{1,15}))(?:, |$)`, 'sy')

/** Returns the allowed values, or null if they exceed `most`, or if the expression is no list of constants. */
export function allowedValues(
  expression: string,
  most: { readonly values: number; readonly characters: number },
): readonly (string | number)[] | null {
  const [, plain, cast] = LIST.exec(expression) ?? []
  const list = plain ?? cast
  if (list === undefined) return null
  const values: (string | number)[] = []
  ITEM.lastIndex = 0
  while (ITEM.lastIndex < list.length) {
    const [, wrapped, text, number] = ITEM.exec(list) ?? []
    const constant = wrapped ?? text
    if (constant === undefined && number === undefined) return null
    values.push(constant === undefined ? Number(number) : constant.replaceAll("''", "'"))
    if (values.length > most.values || (constant?.length ?? 0) > most.characters) return null
  }
  return values
}
