// Lists the allowed types and operators of PostgreSQL, date functions without parentheses, and functions of known
// extensions. A type of pg_catalog that is missing is refused: '…'::regclass would reveal which tables exist.

/** Types of pg_catalog. Their arrays are allowed too. */
export const TYPES: ReadonlySet<string> = new Set(
  `
  bool int2 int4 int8 float4 float8 numeric money text varchar bpchar char name bytea date time timetz
  timestamp timestamptz interval uuid json jsonb jsonpath bit varbit inet cidr macaddr macaddr8 point line lseg
  box path polygon circle tsvector tsquery int4range int8range numrange daterange tsrange tstzrange
  int4multirange int8multirange nummultirange datemultirange tsmultirange tstzmultirange oid pg_lsn
  `
    .split(/\s+/)
    .filter((name) => name !== ''),
)

/** The operators of pg_catalog, which are the same in PostgreSQL 14 to 18. */
export const OWN_OPERATORS: ReadonlySet<string> = new Set(
  `
  !! !~ !~* !~~ !~~* # ## #- #> #>> % & && &< &<| &> * *< *<= *<> *= *> *>= + - -> ->> -|- / < <-> << <<= <<| <= <>
  <@ <^ = > >= >> >>= >^ ? ?# ?& ?- ?-| ?| ?|| @ @-@ @> @? @@ @@@ ^ ^@ | |&> |/ |>> || ||/ ~ ~* ~<=~ ~<~ ~= ~>=~
  ~>~ ~~ ~~*
  `
    .trim()
    .split(/\s+/),
)

/** What to write instead of operators of other dialects. */
export const OPERATOR_ADVICE: ReadonlyMap<string, string> = new Map([
  ['==', 'Write = to compare.'],
  ['===', 'Write = to compare.'],
  ['!==', 'Write <> to compare.'],
  ['<=>', 'Write a IS NOT DISTINCT FROM b.'],
  ['!', 'Write NOT in front of a condition.'],
  ['=~', 'Write ~ to match a regular expression, ~* to ignore case.'],
  ['**', 'Write ^ or power(a, b).'],
  ['//', 'Write / or div(a, b).'],
  ['^^', 'Write a <> b to compare two conditions.'],
  ['=*', 'Write a LEFT JOIN.'],
])

/** Types that cannot be in GROUP BY, because they have no equality operator for it. */
export const WITHOUT_EQUALITY: ReadonlySet<string> = new Set([
  'json',
  'jsonpath',
  'xml',
  'point',
  'line',
  'lseg',
  'box',
  'path',
  'polygon',
  'circle',
])

/** The keywords of SQLValueFunction nodes. CURRENT_USER and similar ones are missing. */
export const VALUE_FUNCTIONS: ReadonlyMap<string, string> = new Map([
  ['SVFOP_CURRENT_DATE', 'CURRENT_DATE'],
  ['SVFOP_CURRENT_TIME', 'CURRENT_TIME'],
  ['SVFOP_CURRENT_TIME_N', 'CURRENT_TIME'],
  ['SVFOP_CURRENT_TIMESTAMP', 'CURRENT_TIMESTAMP'],
  ['SVFOP_CURRENT_TIMESTAMP_N', 'CURRENT_TIMESTAMP'],
  ['SVFOP_LOCALTIME', 'LOCALTIME'],
  ['SVFOP_LOCALTIME_N', 'LOCALTIME'],
  ['SVFOP_LOCALTIMESTAMP', 'LOCALTIMESTAMP'],
  ['SVFOP_LOCALTIMESTAMP_N', 'LOCALTIMESTAMP'],
])

/** The functions that a query may call, by extension. */
export const EXTENSION_FUNCTIONS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  extension(
    'pg_trgm',
    `
    similarity word_similarity strict_word_similarity show_trgm`,
  ),
  extension(
    'unaccent',
    `
    unaccent`,
  ),
  extension(
    'citext',
    `
    citext regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table replace
    split_part strpos translate min max`,
  ),
  extension(
    'hstore',
    `
    akeys avals skeys svals each exist defined hstore_to_json hstore_to_jsonb hstore_to_json_loose
    hstore_to_jsonb_loose hstore_to_array hstore_to_matrix slice fetchval isexists isdefined`,
  ),
  extension(
    'uuid-ossp',
    `
    uuid_generate_v4 uuid_generate_v3 uuid_generate_v5 uuid_nil uuid_ns_dns uuid_ns_url uuid_ns_oid
    uuid_ns_x500`,
  ),
  extension(
    'pgcrypto',
    `
    digest hmac gen_random_uuid armor dearmor`,
  ),
  extension(
    'earthdistance',
    `
    earth earth_distance ll_to_earth latitude longitude earth_box gc_to_sec sec_to_gc`,
  ),
  extension(
    'cube',
    `
    cube cube_dim cube_ll_coord cube_ur_coord cube_distance cube_union cube_inter cube_enlarge cube_is_point
    cube_subset`,
  ),
  extension(
    'intarray',
    `
    icount sort sort_asc sort_desc uniq idx subarray intset`,
  ),
  extension(
    'ltree',
    `
    subltree subpath nlevel index text2ltree ltree2text lca`,
  ),
  extension(
    'fuzzystrmatch',
    `
    levenshtein levenshtein_less_equal soundex difference metaphone dmetaphone dmetaphone_alt daitch_mokotoff`,
  ),
  extension(
    'tablefunc',
    `
    normal_rand`,
  ),
  extension(
    'vector',
    `
    l2_distance inner_product cosine_distance l1_distance hamming_distance jaccard_distance vector_dims
    vector_norm l2_norm l2_normalize binary_quantize subvector avg sum`,
  ),
  extension(
    'timescaledb',
    `
    time_bucket time_bucket_gapfill first last histogram locf interpolate`,
  ),
  extension(
    'postgis',
    // Missing, because no cancel ends them or they take gigabytes: st_buffer, st_union, st_intersection, st_difference,
    // st_symdifference, st_simplifypreservetopology, st_clusterdbscan, st_clusterkmeans.
    `
    st_astext st_asewkt st_asgeojson st_asbinary st_x st_y st_z st_m st_srid st_setsrid st_transform
    st_makepoint st_point st_makeline st_makepolygon st_makeenvelope st_geomfromtext st_geomfromewkt
    st_geogfromtext st_geomfromgeojson st_geomfromwkb st_distance st_distancesphere st_dwithin st_intersects
    st_contains st_within st_covers st_coveredby st_overlaps st_touches st_crosses st_equals st_disjoint
    st_area st_length st_perimeter st_centroid st_pointonsurface st_envelope st_convexhull
    st_collect st_extent st_simplify st_isvalid st_isempty st_geometrytype st_numpoints st_npoints st_pointn
    st_startpoint st_endpoint st_azimuth st_project st_closestpoint st_linelocatepoint
    st_lineinterpolatepoint st_snaptogrid st_geohash st_xmin st_xmax st_ymin st_ymax st_boundary st_dump
    st_dumppoints st_hexagongrid st_squaregrid geometry geography`,
  ),
])

/** The result columns of functions (`extension.function`) that return several columns or a named one. */
export const EXTENSION_OUT_COLUMNS: ReadonlyMap<string, readonly string[]> = new Map([
  ['hstore.each', ['key', 'value']],
  ['postgis.st_dump', ['path', 'geom']],
  ['postgis.st_dumppoints', ['path', 'geom']],
  ['postgis.st_hexagongrid', ['geom', 'i', 'j']],
  ['postgis.st_squaregrid', ['geom', 'i', 'j']],
])

/**
 * Aggregates of extensions that keep the values of all rows. PostGIS also has functions of these names that are no
 * aggregates: with two arguments, or with an array.
 */
export const EXTENSION_COLLECTS: ReadonlySet<string> = new Set(['st_collect', 'st_makeline'])

/** The first major version of PostgreSQL in which an extension has a function (`extension.function`). */
export const EXTENSION_SINCE: ReadonlyMap<string, number> = new Map([['fuzzystrmatch.daitch_mokotoff', 16]])

function extension(name: string, functions: string): [string, ReadonlySet<string>] {
  return [name, new Set(functions.split(/\s+/).filter((entry) => entry !== ''))]
}
