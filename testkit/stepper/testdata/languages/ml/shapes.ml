exception Bad of int
let rec fib n = if n < 2 then n else fib (n-1) + fib (n-2)
let rec deep n = if n = 0 then 1 else (try (if n mod 5 = 0 then raise (Bad n) else n + deep (n-1)) with Bad k -> k)
module M = Map.Make(String)
let () = let m = ref M.empty in for i = 0 to 20 do m := M.add (string_of_int (i*7)) (deep i) !m done;
 let l = List.sort compare (List.map (fun (k,v) -> (v, Printf.sprintf "%s %f" k (float v))) (M.bindings !m)) in
 let f = List.fold_left (fun a (v,s) -> a +. float v +. float (String.length s)) 0. l in
 if f +. float (fib 8) < 0. then exit 1
