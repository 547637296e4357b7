// The answer where mails to an address are used up: nothing is done and nothing is sent, and nobody can tell. It is the
// library's own answer for every address, in the same shape.
import { randomUUID } from 'node:crypto'
import { SignUp } from '../contract/sign-in-routes.ts'
import type { Asked } from './read-request.ts'
import type { Library } from './library.ts'
import { SIGN_UP } from './paths.ts'

const ASKED_FOR_RESET = 'If this email exists in our system, check your email for the reset link'

export async function unsent(library: Library, asked: Asked, now: number): Promise<Response> {
  if (asked.name === 'POST /auth/request-password-reset') {
    return Response.json({ status: true, message: ASKED_FOR_RESET })
  }
  if (asked.name !== SIGN_UP) return Response.json({ status: true })
  const { name, email, password } = SignUp.parse(asked.body)
  // Costs what a sign-up costs.
  await library.hashPassword(password)
  const at = new Date(now).toISOString()
  const user = { name, email: email.toLowerCase(), emailVerified: false, image: null, createdAt: at, updatedAt: at }
  return Response.json({ token: null, user: { ...user, twoFactorEnabled: false, id: randomUUID() } })
}
