// For an unknown stage, operator or accumulator, suggests what the caller may mean: the equivalent of a name from
// another language, or a similar name. Only allowed names are suggested.
import { didYouMean, nearest } from '../../../nearest.ts'
import type { Hint } from './refusal.ts'

const FOREIGN: ReadonlyMap<string, string> = new Map(
  Object.entries({
    lowercase: '$toLower',
    lower: '$toLower',
    lcase: '$toLower',
    uppercase: '$toUpper',
    upper: '$toUpper',
    ucase: '$toUpper',
    len: '$strLenCP $size',
    length: '$strLenCP $size',
    char_length: '$strLenCP',
    average: '$avg',
    mean: '$avg',
    contains: '$in $regexMatch $regex',
    includes: '$in $regexMatch',
    startswith: '$regexMatch $regex',
    endswith: '$regexMatch $regex',
    where: '$expr $match',
    function: '$expr',
    like: '$regex $regexMatch',
    ilike: '$regex $regexMatch',
    join: '$lookup',
    leftjoin: '$lookup',
    union: '$unionWith $setUnion',
    unionall: '$unionWith',
    select: '$project',
    filter: '$match $filter',
    find: '$match',
    having: '$match',
    orderby: '$sort',
    order: '$sort',
    groupby: '$group',
    top: '$limit $topN',
    take: '$limit',
    offset: '$skip',
    explode: '$unwind',
    flatten: '$unwind $reduce',
    distinct: '$group $addToSet',
    uniq: '$addToSet $setUnion',
    array_agg: '$push',
    collect: '$push',
    concat_ws: '$concat $reduce',
    string_agg: '$reduce',
    coalesce: '$ifNull',
    nvl: '$ifNull',
    isnull: '$ifNull',
    if: '$cond',
    iif: '$cond',
    case: '$switch',
    cast: '$convert',
    tofloat: '$toDouble',
    tonumber: '$toDouble',
    tointeger: '$toInt',
    substring: '$substrCP',
    indexof: '$indexOfArray $indexOfCP',
    replace: '$replaceAll $replaceOne',
    power: '$pow',
    diff: '$subtract $dateDiff',
    plus: '$add',
    minus: '$subtract',
    times: '$multiply',
    div: '$divide',
    modulo: '$mod',
    datediff: '$dateDiff',
    dateadd: '$dateAdd',
    datetrunc: '$dateTrunc',
    dateformat: '$dateToString',
    day: '$dayOfMonth',
    between: '$gte $lte',
    equals: '$eq',
    notin: '$nin',
    isin: '$in',
    search: '$match $regex',
    text: '$regex',
    near: '$geoWithin',
    nearsphere: '$geoWithin',
    geonear: '$match $geoWithin',
    rand: '$sample',
    vectorsearch: '$match',
  }),
)

const TOLD = 3

/** If a name is near, the hint begins with a question such as `Did you mean $toLower?`. */
export function suggested(name: string, allowed: Iterable<string>, rest: string): Hint {
  const names = [...allowed]
  const known = new Set(names)
  const plain = name.slice(0, 64).replace(/^\$/, '').toLowerCase()
  const equivalents = (FOREIGN.get(plain) ?? FOREIGN.get(plain.replaceAll('_', '')) ?? '').split(' ')
  const meant = equivalents.filter((each) => known.has(each))
  const told = (meant.length > 0 ? meant : nearest(name, names)).slice(0, TOLD)
  const question = didYouMean(told)
  // If there are several equivalents, their meanings differ, so none of them counts as near.
  return { text: question === '' ? rest : `${question} ${rest}`, near: equivalents.length > 1 ? [] : told }
}
