// The functions of pg_catalog that a query may call. Read the documentation of a function before you add it:
// has_*_privilege and pg_get_viewdef are not volatile (but STABLE), and disclose information.
// test/drivers/postgres-versions.test.ts checks every overload of each name on PostgreSQL 14 to 18.

const GROUPS = {
  aggregate: `
    any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or count every json_agg json_agg_strict
    json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_agg
    jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique
    jsonb_object_agg_unique_strict max min range_agg range_intersect_agg string_agg sum corr covar_pop
    covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    stddev stddev_pop stddev_samp variance var_pop var_samp mode percentile_cont percentile_disc`,
  window: `
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value`,
  math: `
    abs cbrt ceil ceiling degrees div erf erfc exp factorial floor gamma lgamma gcd lcm ln log log10 min_scale
    mod pi power pow radians round scale sign sqrt trim_scale trunc width_bucket random random_normal acos
    acosd asin asind atan atand atan2 atan2d cos cosd cot cotd sin sind tan tand sinh cosh tanh asinh acosh
    atanh float4 float8 int2 int4 int8 numeric`,
  string: `
    ascii bit_length btrim casefold char_length character_length chr concat concat_ws format initcap left
    length lower lpad ltrim md5 normalize is_normalized octet_length overlay parse_ident position quote_ident
    quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches
    regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat replace reverse right rpad
    rtrim split_part starts_with string_to_array string_to_table strpos substr substring to_ascii to_bin to_hex
    to_oct translate unicode_assigned unistr upper like_escape similar_to_escape similar_escape text varchar
    bpchar textlen`,
  binary: `
    bit_count convert convert_from convert_to crc32 crc32c decode encode get_bit get_byte set_bit set_byte
    sha224 sha256 sha384 sha512`,
  formatting: `
    to_char to_date to_number to_timestamp`,
  date: `
    age clock_timestamp date date_add date_bin date_part date_subtract date_trunc extract isfinite justify_days
    justify_hours justify_interval make_date make_interval make_time make_timestamp make_timestamptz now
    overlaps statement_timestamp timeofday timezone transaction_timestamp timestamp timestamptz time timetz
    interval`,
  json: `
    to_json to_jsonb array_to_json row_to_json json_build_array jsonb_build_array json_build_object
    jsonb_build_object json_object jsonb_object json_array_elements jsonb_array_elements
    json_array_elements_text jsonb_array_elements_text json_array_length jsonb_array_length json_each
    jsonb_each json_each_text jsonb_each_text json_extract_path jsonb_extract_path json_extract_path_text
    jsonb_extract_path_text json_object_keys jsonb_object_keys json_to_record jsonb_to_record json_to_recordset
    jsonb_to_recordset json_strip_nulls jsonb_strip_nulls jsonb_set jsonb_set_lax jsonb_insert jsonb_concat
    jsonb_delete jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array
    jsonb_path_query_first jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_tz
    jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_pretty json_typeof jsonb_typeof jsonb_contains
    jsonb_exists jsonb_exists_any jsonb_exists_all jsonb_contained jsonb_delete_path`,
  json_record_from_type: `
    json_populate_record jsonb_populate_record json_populate_recordset jsonb_populate_recordset`,
  array: `
    array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position
    array_positions array_prepend array_remove array_replace array_reverse array_sample array_shuffle
    array_sort array_to_string array_upper cardinality trim_array unnest generate_subscripts generate_series`,
  range: `
    lower upper isempty lower_inc upper_inc lower_inf upper_inf range_merge multirange int4range int8range
    numrange tsrange tstzrange daterange int4multirange int8multirange nummultirange tsmultirange
    tstzmultirange datemultirange`,
  geometric: `
    area center diagonal diameter height isclosed isopen length npoints pclose popen radius slope width box
    bound_box circle line lseg path point polygon`,
  text_search: `
    array_to_tsvector numnode plainto_tsquery phraseto_tsquery websearch_to_tsquery querytree setweight strip
    to_tsquery to_tsvector json_to_tsvector jsonb_to_tsvector ts_delete ts_filter ts_headline ts_rank
    ts_rank_cd tsquery_phrase tsvector_to_array length`,
  network: `
    abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen text
    trunc macaddr8_set7bit`,
  uuid: `
    gen_random_uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version`,
  enum: `
    enum_first enum_last enum_range`,
  conditional_compare: `
    num_nulls num_nonnulls`,
  type_info: `
    pg_typeof`,
  collation: `
    pg_collation_for`,
  hash: `
    hashtext hashtextextended`,
  size: `
    pg_size_pretty pg_size_bytes`,
} as const

function names(text: string): string[] {
  return text.split(/\s+/).filter((name) => name !== '')
}

/** ts_rewrite is missing, because isListed() in function-lookup.ts allows only one overload of it. */
export const FUNCTIONS: ReadonlySet<string> = new Set(Object.values(GROUPS).flatMap(names))

/** Functions that may make a text or a document of a text, also those of extensions. */
export const MAKES_TEXT: ReadonlySet<string> = new Set([
  ...[GROUPS.string, GROUPS.binary, GROUPS.json, GROUPS.json_record_from_type, GROUPS.array].flatMap(names),
  ...names(GROUPS.text_search),
  ...['akeys', 'avals', 'slice', 'unaccent'],
])

/** In the arguments of these functions, a column need not be in GROUP BY. */
export const AGGREGATES: ReadonlySet<string> = new Set(names(GROUPS.aggregate))

/** Functions that return a record with the columns of their first argument, whose type must be known. */
export const FROM_ROW_TYPE: ReadonlySet<string> = new Set(names(GROUPS.json_record_from_type))

/** Functions that return a record whose columns the caller writes: `AS t(a int)`. */
export const FROM_DEFINITION: ReadonlySet<string> = new Set([
  'json_to_record',
  'jsonb_to_record',
  'json_to_recordset',
  'jsonb_to_recordset',
])

/** Functions that return rows. A query that calls one may cost more than the size of its table suggests. */
export const RETURNS_ROWS: ReadonlySet<string> = new Set(
  names(`
    string_to_table generate_subscripts unnest regexp_matches regexp_split_to_table generate_series
    json_array_elements json_array_elements_text json_object_keys json_each json_each_text json_to_recordset
    jsonb_array_elements jsonb_array_elements_text jsonb_object_keys jsonb_each jsonb_each_text
    jsonb_populate_recordset jsonb_to_recordset jsonb_path_query json_populate_recordset jsonb_path_query_tz`),
)

/** The column names in FROM of functions with OUT parameters. */
export const OUT_COLUMNS: ReadonlyMap<string, readonly string[]> = new Map([
  ['json_array_elements', ['value']],
  ['jsonb_array_elements', ['value']],
  ['json_array_elements_text', ['value']],
  ['jsonb_array_elements_text', ['value']],
  ['json_each', ['key', 'value']],
  ['jsonb_each', ['key', 'value']],
  ['json_each_text', ['key', 'value']],
  ['jsonb_each_text', ['key', 'value']],
])

/**
 * Functions that allocate memory in proportion to one argument, and the position of that argument, from 1. The argument
 * may be at most COUNT_MAX (argument-bounds.ts).
 */
export const COUNTED_ARGUMENT: ReadonlyMap<string, number> = new Map([
  ['repeat', 2],
  ['lpad', 2],
  ['rpad', 2],
  ['array_fill', 2],
])
export const COUNT_MAX = 10_000

/** The first major version of PostgreSQL that has a function. The key is its name, or name/arity for one overload. */
export const SINCE: ReadonlyMap<string, number> = new Map<string, number>([
  ...since(
    15,
    `
    regexp_count regexp_instr regexp_like regexp_substr`,
  ),
  ...since(
    16,
    `
    any_value json_agg_strict json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict
    jsonb_agg_strict jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict erf erfc
    random_normal date_add date_subtract array_sample array_shuffle`,
  ),
  ...since(
    17,
    `
    to_bin to_oct unicode_assigned uuid_extract_timestamp uuid_extract_version`,
  ),
  ...since(
    18,
    `
    gamma lgamma casefold crc32 crc32c array_reverse array_sort uuidv4 uuidv7`,
  ),
  ...since(
    15,
    `
    regexp_replace/5 regexp_replace/6`,
  ),
  ...since(
    16,
    `
    generate_series/4`,
  ),
  ...since(
    17,
    `
    random/2 timezone/1`,
  ),
  ...since(
    18,
    `
    json_strip_nulls/2 jsonb_strip_nulls/2`,
  ),
])

function since(version: number, text: string): [string, number][] {
  return names(text).map((name) => [name, version])
}
