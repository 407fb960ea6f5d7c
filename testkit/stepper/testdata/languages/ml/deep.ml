exception Bad of string
let rec even n = n = 0 || odd (n - 1)
and odd n = n <> 0 && even (n - 1)
let many a b c d e f g h i j k l = a + b + c + d + e + f + g + h + i + j + k + l
let rec deep n f =
  let a = Array.make (n + 1) n in
  let mine k = if k mod 4 = 3 then raise (Bad (string_of_int k)) else a.(0) + f k in
  try
    if n = 0 then many 1 2 3 4 5 6 7 8 9 10 (mine 5) (f 2)
    else Fun.protect ~finally:(fun () -> a.(0) <- 0) (fun () -> deep (n - 1) mine + f n)
  with Bad s when n < 6 -> String.length s
let () =
  let s = ref 0 in
  for i = 0 to 7 do (try s := !s + deep i (fun k -> k + i) with Bad _ | Fun.Finally_raised _ -> incr s) done;
  let l = Lazy.from_fun (fun () -> Gc.compact (); even !s) in
  Hashtbl.iter (fun _ v -> if v < 0 then ignore (Lazy.force l)) (Hashtbl.create 3);
  Array.sort compare (Array.init 30 (fun i -> i * 7 mod 11)); ignore (Lazy.force l)
