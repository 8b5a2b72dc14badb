(* Each line of input makes stacks overflow in OCaml code and prints what was caught. *)
let rec descend n = if n = 0 then 0 else 1 + descend (n - 1)
let rec endless n = 1 + endless (n + 1)

let rec count_to_end list = match list with [] -> 0 | _ :: rest -> 1 + count_to_end rest

let caught = ref 0

let overflow f = try ignore (f 0) with Stack_overflow -> incr caught

let batch () =
  caught := 0;
  overflow endless;
  overflow (fun n -> try endless n with Not_found -> 0);
  (try ignore (Hashtbl.hash (descend 1000) / (descend 10 - 10)) with Division_by_zero -> incr caught);
  (try ignore (count_to_end (List.init 1000 succ)) with Stack_overflow -> caught := -100);
  Printf.printf "caught %d\n%!" !caught

let () = try while true do ignore (input_line stdin); batch () done with End_of_file -> exit 3
