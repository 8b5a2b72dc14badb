;;; Each line of input makes faults that SBCL turns into conditions, and prints what was caught.
(defun endless (n) (declare (notinline endless)) (1+ (endless (1+ n))))
(defun peek (address) (sb-sys:sap-ref-32 (sb-sys:int-sap address) 0))
(defun divide (a b) (declare (notinline divide)) (truncate a b))

(defmacro caught (kind &body body)
  `(handler-case (progn ,@body 0) (,kind () 1)))

(defun batch ()
  (let ((count 0))
    (dotimes (i 50)
      (incf count (caught sb-sys:memory-fault-error (peek 8)))
      (incf count (caught division-by-zero (divide i (- i i))))
      (incf count (caught division-by-zero (/ (float i 1d0) (- (float i 1d0) i)))))
    (incf count (caught storage-condition (endless 0)))
    (incf count (caught storage-condition (endless 0)))
    count))

(handler-bind ((warning #'muffle-warning))
  (loop while (read-line *standard-input* nil nil)
        do (format t "caught ~d~%" (batch))
           (finish-output)))
(sb-ext:exit :code 3 :abort t)
