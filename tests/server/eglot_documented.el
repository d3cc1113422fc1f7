;;; Emacs with nothing but the configuration that docs/editors.md prints: does eglot attach to a Python file,
;;; does what the server knows arrive by eglot's own commands, and does a kernel come and go by undo?
;;; INIT names the configuration, MODEL the file, WORDS the line; what was seen goes to the file OUT.
;;; -*- lexical-binding: t -*-

(package-initialize) ; an Emacs that is not in batch mode does so before it reads init.el
(require 'json)
(require 'cl-lib)
(load (getenv "INIT") nil t)

(defvar seen nil "What was seen, name to value.")
(defvar asked nil "Questions that Emacs asked; each is answered with yes.")

(defun note (name value)
  (push (cons name value) seen))

(defun until (what condition)
  "Waits until CONDITION gives a value, and gives it."
  (let ((end (+ (float-time) 60)) value)
    (while (not (setq value (funcall condition)))
      (when (> (float-time) end)
        (error "%s did not happen in time" what))
      (accept-process-output nil 0.05))
    value))

(defun titles ()
  (mapcar (lambda (action) (plist-get action :title)) (eglot-code-actions (point) (point))))

(defun act (title)
  "Chooses the code action that begins with TITLE, as a person does."
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt items &rest _)
               (or (car (cl-find-if (lambda (item) (string-prefix-p title (car item))) items))
                   (error "No action %s among %S" title items))))
            (last-nonmenu-event ?x))
    (eglot-code-actions (point) nil nil t)))

(defun text ()
  (buffer-substring-no-properties (point-min) (point-max)))

(cl-letf (((symbol-function 'y-or-n-p) (lambda (prompt) (push prompt asked) t)))
  (condition-case failure
      (progn
        (find-file (getenv "MODEL"))
        (run-hooks 'post-command-hook) ; the first command after which eglot connects
        (until "attaching" (lambda () (eglot-managed-p)))
        (note 'attached t)
        (until "a diagnostic" (lambda () (flymake-diagnostics)))
        (note 'diagnostics (vconcat (mapcar #'flymake-diagnostic-text (flymake-diagnostics))))
        (goto-char (point-min))
        (search-forward (getenv "WORDS"))
        (note 'titles (vconcat (until "code actions" #'titles)))
        (when (getenv "ACTION")
          (undo-boundary)
          (act (getenv "ACTION"))
          (until "the edit" #'buffer-modified-p)
          (note 'edited (text))
          (undo-boundary)
          (setq last-command nil)
          (undo)
          (note 'undone (text))))
    (error (note 'failure (error-message-string failure)))))
(note 'asked (vconcat asked))
(with-temp-file (getenv "OUT") (insert (json-encode seen)))
(set-buffer-modified-p nil)
(kill-emacs)
