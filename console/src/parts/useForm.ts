// The texts of a form, and what sets each of them.
import { useState, type ChangeEvent, type FormEvent } from 'react'

export function useForm<F extends Record<string, string>>(initial: F) {
  const [form, setForm] = useState(initial)
  const field = (name: keyof F & string) => ({
    value: form[name] ?? '',
    onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => {
      const { value } = event.target
      setForm((before) => ({ ...before, [name]: value }))
    },
  })
  return { form, field, setForm }
}

/** For `onSubmit`: the page is not left. */
export const submitting = (run: () => void) => (event: FormEvent) => {
  event.preventDefault()
  run()
}
