// Where menus are put into the document: inside the main landmark, so that all content of a page is in one.
export const landmark = {
  get current(): HTMLElement | null {
    return document.querySelector('main')
  },
}
