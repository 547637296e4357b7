// Explains the errors of PostGIS. For a mistake in a query, PostGIS reports an internal error (XX000) whose message may
// contain stored values, so it is not shown.

interface Explained {
  readonly message: string
  readonly hint: string
}

/** Matches a printed text that calls PostGIS or casts to its types. */
const SPATIAL = /"(?:st_\w+|geometry|geography)"/

/** The first pattern that matches the message gives the sentence and the hint. */
const EXPLAINED: readonly (readonly [RegExp, string, string])[] = [
  [
    /mixed SRID/,
    'Two geometries have different coordinate systems (SRIDs).',
    'Convert one of them: st_transform(geometry, 4326).',
  ],
  [
    /SRID/,
    'The coordinate system (SRID) of a geometry is not known.',
    'Set the coordinate system with st_setsrid(geometry, 4326), then convert it with st_transform.',
  ],
  [
    /parse error|GeoJson|unexpected end of data|WKB|hex|requires more points|non-closed|unclosed|dimensionality/i,
    'A text or a binary value is not a valid geometry.',
    "Write WKT such as 'POINT(1 2)', in which each ring of a polygon ends where it starts, or GeoJSON.",
  ],
  [
    /coordinate|decimal degrees|latitude|longitude|tolerance condition/i,
    'A geometry has coordinates that are not valid in its coordinate system.',
    'Check the order of the coordinates (longitude first) and the SRID: st_srid(geometry).',
  ],
  [
    /argument|\barg\b|\binputs?\b|geometr|must be|must have|points?\b|\blines?\b|shell|polygon|GEOS/i,
    'A spatial function does not accept one of its arguments.',
    'Check the type of each geometry with st_geometrytype(geometry). Leave out those that st_isvalid(geometry) rejects.',
  ],
]

export function spatialFailure(code: string, message: string, text: string): Explained | undefined {
  if (code !== 'XX000' || !SPATIAL.test(text)) return undefined
  const found = EXPLAINED.find(([pattern]) => pattern.test(message))
  return found && { message: found[1], hint: found[2] }
}
