// Reads the values that a CHECK of one column allows, if the CHECK is a list of constants. The input is the output of
// pg_get_expr.

const NAME = String.raw`(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)`
/** `name = ANY (ARRAY[…])`, with the casts that PostgreSQL adds for varchar. */
const LIST = new RegExp(
  String.raw`^\((?:${NAME}|\(${NAME}\)::text) = ANY \((?:ARRAY\[(.+)\]|\(ARRAY\[(.+)\]\)::text\[\])\)\)$`,
  's',
)
const TEXT = String.raw`'((?:[^']|'')*)'::(?:text|character varying|bpchar)`
const ITEM = new RegExp(String.raw`(?:\(${TEXT}\)::text|${TEXT}|(-?\d{1,15}))(?:, |$)`, 'sy')

/**
 * Returns the allowed values. Returns null if there are more or longer values than `most` allows, or if the expression
 * is not a list of constants.
 */
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
