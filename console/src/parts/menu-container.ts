// The element that menus are rendered into. It is inside the main landmark, so that all content of a page is in one
// landmark.
export const landmark = {
  get current(): HTMLElement | null {
    return document.querySelector('main')
  },
}
