// If too many mails were requested for an e-mail address, a request sends no mail and changes nothing. It gets the same
// answer as other requests, so that nobody notices the limit.
import { randomUUID } from 'node:crypto'
import { SignUp } from '../contract/sign-in-routes.ts'
import type { SignInRequest } from './read-request.ts'
import type { Library } from './sign-in-library.ts'
import { SIGN_UP } from './allowed-paths.ts'

const RESET_ANSWER = 'If this email exists in our system, check your email for the reset link'

export async function unsent(library: Library, input: SignInRequest, now: number): Promise<Response> {
  if (input.name === 'POST /auth/request-password-reset') {
    return Response.json({ status: true, message: RESET_ANSWER })
  }
  if (input.name !== SIGN_UP) return Response.json({ status: true })
  const { name, email, password } = SignUp.parse(input.body)
  // With the hash, this takes as long as a real sign-up.
  await library.hashPassword(password)
  const at = new Date(now).toISOString()
  const user = { name, email: email.toLowerCase(), emailVerified: false, image: null, createdAt: at, updatedAt: at }
  return Response.json({ token: null, user: { ...user, twoFactorEnabled: false, id: randomUUID() } })
}
