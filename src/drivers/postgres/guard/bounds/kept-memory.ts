// Tells how much memory a call, an operator or a cast keeps for each byte of its argument, until the row ends.
// int4multirange keeps two strings of a kilobyte for each range of six letters. What is on no list here counts as
// UNKNOWN, so that one that is added later is on the safe side. The same number holds for all values that a query can
// make long: from constants, from parameters, collected from rows, and grown by a recursion.

/** The memory of calls and types that are on no list: the worst that was measured is 350, for a multirange. */
export const UNKNOWN = 400
/** The same for operators. */
const UNKNOWN_OPERATOR = 40
/** Functions of PostGIS. Other limits bound the parameters. */
const SPATIAL = 100

const list = (text: string): readonly string[] => text.split(/\s+/).filter((name) => name !== '')
const each = (count: number, text: string): readonly (readonly [string, number])[] =>
  list(text).map((name) => [name, count])

/** Functions whose memory is a few times their arguments, and those that other rules of value-growth.ts count. */
const PROPORTIONAL = list(`
  any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or count every json_agg json_agg_strict
  json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_agg
  jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique
  jsonb_object_agg_unique_strict max min range_agg range_intersect_agg string_agg sum corr covar_pop
  covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
  stddev stddev_pop stddev_samp variance var_pop var_samp mode percentile_cont percentile_disc
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
  abs cbrt ceil ceiling degrees div erf erfc exp factorial floor gamma lgamma gcd lcm ln log log10 min_scale
  mod pi power pow radians round scale sign sqrt trim_scale trunc width_bucket random random_normal acos
  acosd asin asind atan atand atan2 atan2d cos cosd cot cotd sin sind tan tand sinh cosh tanh asinh acosh
  atanh float4 float8 int2 int4 int8 numeric
  ascii bit_length btrim casefold char_length character_length chr concat concat_ws format initcap left
  length lower lpad ltrim md5 normalize is_normalized octet_length overlay position quote_ident
  quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches
  regexp_replace regexp_substr repeat replace reverse right rpad
  rtrim split_part starts_with string_to_array string_to_table strpos substr substring to_ascii to_bin to_hex
  to_oct unicode_assigned unistr upper like_escape similar_to_escape similar_escape text varchar
  bpchar textlen
  bit_count convert convert_from convert_to crc32 crc32c decode encode get_bit get_byte set_bit set_byte
  sha224 sha256 sha384 sha512
  age clock_timestamp date date_add date_bin date_part date_subtract date_trunc extract isfinite justify_days
  justify_hours justify_interval make_date make_interval make_time make_timestamp make_timestamptz now
  overlaps statement_timestamp timeofday timezone transaction_timestamp timestamp timestamptz time timetz
  interval
  json_array_elements json_array_elements_text json_array_length json_each json_each_text json_extract_path
  json_extract_path_text json_object_keys json_strip_nulls json_typeof jsonb_array_elements
  jsonb_array_elements_text jsonb_array_length jsonb_contained jsonb_contains jsonb_each jsonb_each_text
  jsonb_exists jsonb_exists_all jsonb_exists_any jsonb_extract_path jsonb_extract_path_text jsonb_object_keys
  jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_pretty jsonb_typeof
  json_to_record json_to_recordset jsonb_to_record jsonb_to_recordset
  array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position
  array_positions array_prepend array_remove array_replace array_upper cardinality trim_array unnest
  generate_subscripts generate_series
  isempty lower_inc upper_inc lower_inf upper_inf range_merge int4range int8range
  numrange tsrange tstzrange daterange int4multirange int8multirange nummultirange tsmultirange
  tstzmultirange datemultirange parse_ident
  area center diagonal diameter height isclosed isopen npoints pclose popen radius slope width box
  bound_box circle line lseg path point polygon
  numnode querytree setweight strip ts_delete ts_filter ts_rank ts_rank_cd tsquery_phrase
  abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen
  macaddr8_set7bit
  gen_random_uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version
  enum_first enum_last enum_range num_nulls num_nonnulls pg_typeof pg_collation_for hashtext hashtextextended
  pg_size_pretty pg_size_bytes set_config current_setting pg_column_size
  citext unaccent digest hmac uuid_generate_v3 uuid_generate_v5`)

/** Functions that keep more, and how many copies of their argument. */
const CALLS: ReadonlyMap<string, number> = new Map([
  ...PROPORTIONAL.map((name) => [name, 0] as const),
  // An element of an array becomes an entry of 32 bytes, and a text of its own.
  ...each(
    8,
    `array_to_string array_reverse array_sample array_shuffle array_sort array_to_tsvector tsvector_to_array multirange
    unnest regexp_split_to_array regexp_split_to_table`,
  ),
  // A document of short numbers has eight times the bytes of its text.
  ...each(
    32,
    `to_jsonb jsonb_build_array jsonb_build_object jsonb_object jsonb_set jsonb_set_lax jsonb_insert jsonb_concat
    jsonb_delete jsonb_delete_path jsonb_strip_nulls`,
  ),
  // The result has room for four bytes for each letter.
  ['translate', 4] as const,
  // Control characters become six letters, in a buffer of twice the size.
  ...each(12, 'to_json array_to_json row_to_json json_build_array json_build_object json_object jsonb_pretty'),
  // An item of a document of two bytes becomes an entry of 40 bytes, and a list of items another one.
  ...each(
    24,
    `json_array_length json_object_keys json_strip_nulls json_extract_path json_extract_path_text jsonb_contains
    jsonb_contained jsonb_exists_any jsonb_exists_all`,
  ),
  // A letter of a format becomes a node, and a word of a text an entry.
  ...each(
    40,
    `to_char to_date to_number to_timestamp to_tsvector json_to_tsvector jsonb_to_tsvector to_tsquery plainto_tsquery
    phraseto_tsquery websearch_to_tsquery ts_headline similarity word_similarity strict_word_similarity show_trgm`,
  ),
  ...each(
    50,
    `jsonb_path_query jsonb_path_query_tz jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first
    jsonb_path_query_first_tz jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz`,
  ),
])
/** A path with .keyvalue() makes an object of three fields for each field. */
export const KEY_VALUES = 80
/** regexp_split_to_array() with a pattern that can match nothing makes a text of each letter. */
export const SPLIT_LETTERS = 48

/** Returns how many copies of its arguments a function keeps. `isVariadic` says that the last one is a list of arguments. */
export function keptByCall(name: string, isVariadic: boolean): number {
  const known = isVariadic && /^concat/.test(name) ? 8 : CALLS.get(name)
  return known ?? (name.startsWith('st_') ? SPATIAL : UNKNOWN)
}

/** Operators that keep little. A value that is compared may be copied without the spaces at its end. */
const OPERATORS: ReadonlyMap<string, number> = new Map([
  ...each(2, '= <> != < > <= >= ~~ !~~ ~~* !~~* ~ ~* !~ !~* ^@ ||'),
  ...each(3, '-> ->> #> #>>'),
  ...each(12, '@> <@ ? ?| ?&'),
])
const ARITHMETIC = /^(?:[-+*/%^@&|#~]|<<|>>|\|\/|\|\|\/)$/

/**
 * Returns how many copies of its sides an operator keeps, unless they are numbers. `isDocument` says that a side is a
 * jsonb document.
 */
export function keptByOperator(symbol: string, isDocument: boolean): number {
  if (isDocument && /^(?:\|\||-|#-)$/.test(symbol)) return 32
  return OPERATORS.get(symbol) ?? (ARITHMETIC.test(symbol) && !isDocument ? 2 : UNKNOWN_OPERATOR)
}

/** Returns how many copies of an array an implicit cast to another type keeps: `2.5 = ANY (x)`, with integers in x. */
export const CONVERTED_ARRAY = 12

/** The bytes of a value for each byte of its text, for values of these types. */
const TYPES: ReadonlyMap<string, number> = new Map([
  ...each(
    1,
    `text varchar citext name bytea numeric json jsonb jsonpath int4range int8range numrange daterange tsrange
    tstzrange pg_lsn`,
  ),
  ...each(8, 'geometry geography box2d box3d vector halfvec sparsevec cube earth path polygon'),
  ...each(16, 'ltree lquery tsvector'),
  ...each(24, 'hstore'),
  ...each(40, 'ltxtquery tsquery query_int'),
])
/** The same for elements of arrays. */
const ELEMENTS: ReadonlyMap<string, number> = new Map([
  ...each(5, 'text varchar citext bytea'),
  // json_in() keeps a lexer for each element.
  ...each(80, 'json name'),
])
/** Multiranges and arrays of ranges: each bound keeps a string of a kilobyte. */
const RANGES = 350
/** A constant is read once, before the first row. Its value still becomes long when it is written as text. */
const CONSTANT_RANGES = 60

/** Returns the memory of a value of a type, for each byte of its text. */
export function memoryOf(type: string, isArray: boolean, isConstant: boolean): number {
  if (type.endsWith('multirange') || (isArray && type.endsWith('range'))) return isConstant ? CONSTANT_RANGES : RANGES
  if (isConstant) return isArray ? 5 : 1
  return (isArray ? ELEMENTS : TYPES).get(type) ?? UNKNOWN
}

/** Types and functions of shapes. */
const SHAPES = /^(?:point|box|lseg|line|path|polygon|circle)$/
/** The memory of the text of an array or a document, for each byte of the value. */
const WRITTEN_LIST = 3
const WRITTEN_DOCUMENT = 6
const WRITTEN_SHAPE = 25
/** A bound of a range of 32 bytes becomes a string of a kilobyte. */
const WRITTEN_RANGE = 100

/**
 * Returns how many copies of a value of a type PostgreSQL keeps while it writes the value as text, also for a JSON
 * document or another array. Undefined for texts, and for numbers and the like.
 */
export function writtenAs(type: string, isArray: boolean): number | undefined {
  const name = type.replace(/^_/, '')
  if (SHAPES.test(name)) return WRITTEN_SHAPE
  // memoryOf() counts the text of ranges that are read from a text.
  if (isArray || name.endsWith('range')) return WRITTEN_LIST
  if (name === 'jsonb') return WRITTEN_DOCUMENT
  return /^(?:bpchar|char|bit|varbit|tsvector|tsquery|hstore|ltree|bytea)$/.test(name) ? 2 : undefined
}

/** Returns the same for the result of a function. `most` is that of its arguments. */
export function writtenBy(name: string, most: number | undefined): number | undefined {
  if (/range/.test(name)) return WRITTEN_RANGE
  const own = SHAPES.test(name)
    ? WRITTEN_SHAPE
    : BUILDS.test(name)
      ? WRITTEN_DOCUMENT
      : LISTS.test(name)
        ? WRITTEN_LIST
        : 0
  return Math.max(own, TEXTS.test(name) ? 0 : (most ?? 0)) || undefined
}

const BUILDS = /^(?:to_jsonb|jsonb_.*)$/
const LISTS = /^(?:array_.*|string_to_array|regexp_.*|enum_range|parse_ident|show_trgm)$/
const TEXTS =
  /^(?:array_to_string|concat|concat_ws|format|lower|upper|initcap|trim|[blr]trim|[lr]pad|left|right|substr|substring|replace|translate|regexp_replace|regexp_substr|reverse|repeat|quote_.*|to_char|string_agg|md5|encode|convert_from|jsonb?_pretty|jsonb?_typeof|split_part)$/
/** Functions that write their arguments as text. */
export const WRITES =
  /^(?:array_to_string|array_to_json|array_to_tsvector|concat|concat_ws|format|quote_literal|quote_nullable|row_to_json|jsonb_pretty|to_jsonb?|jsonb?_(?:agg|build|object).*|string_agg|text|varchar|bpchar)$/
