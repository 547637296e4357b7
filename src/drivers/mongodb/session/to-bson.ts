// Converts the plain values of a confined query to classes of the client library.
import type * as mongodb from 'mongodb'
import { isArray, Scalar, type Bson, type BsonDocument } from '../confined-query.ts'

type Library = Pick<typeof mongodb, 'BSON'>

/** Keeps the order of keys and adds nothing. */
export function toBson(library: Library, value: BsonDocument): mongodb.Document {
  const document: mongodb.Document = {}
  for (const [name, inner] of Object.entries(value)) {
    Object.defineProperty(document, name, {
      value: converted(library, inner),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return document
}

function converted(library: Library, value: Bson): unknown {
  if (value === null || typeof value !== 'object') return value
  if (value instanceof Scalar) return scalar(library.BSON, value)
  if (isArray(value)) return value.map((each) => converted(library, each))
  return toBson(library, value)
}

function scalar(bson: typeof mongodb.BSON, { of }: Scalar): unknown {
  switch (of.kind) {
    case '$oid':
      return new bson.ObjectId(of.hex)
    case '$date':
      return new Date(of.milliseconds)
    case '$numberInt':
      return new bson.Int32(of.value)
    case '$numberLong':
      return bson.Long.fromBigInt(of.value)
    case '$numberDouble':
      return new bson.Double(of.value)
    case '$numberDecimal':
      return bson.Decimal128.fromString(of.text)
    case '$binary':
      return new bson.Binary(Buffer.from(of.base64, 'base64'), of.subType)
    case '$uuid':
      return new bson.UUID(of.text)
    case '$regularExpression':
      return new bson.BSONRegExp(of.pattern, of.options)
    case '$timestamp':
      return new bson.Timestamp({ t: of.t, i: of.i })
    case '$minKey':
      return new bson.MinKey()
    case '$maxKey':
      return new bson.MaxKey()
    default:
      return of satisfies never
  }
}
